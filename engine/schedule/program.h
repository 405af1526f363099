#pragma once
// What scheduling makes of a graph: which nodes are computed by kernels, by library calls or by reference calls, which
// are only views of memory and not computed at all, and where values live.
#include <map>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/libraries/choose.h"
#include "engine/loops/loop_plan.h"

namespace cutaway {

/// One result of one node. Results of tuples are numbered; everything else has result 0.
struct ValueKey {
    const Node* node = nullptr;
    size_t result = 0;
    bool operator==(const ValueKey&) const = default;
    bool operator<(const ValueKey& other) const {
        return node->id() != other.node->id() ? node->id() < other.node->id() : result < other.result;
    }
};
/// Follows getitem to the tuple's producer.
ValueKey resolve(const Node& node);
/// Follows getitem and views to the value whose memory this is.
ValueKey rootOf(const Node& node);
/// Type of a result; null if it is not a tensor.
const TensorType* tensorOf(const ValueKey& key);
/// "v12", "v12_1": how Loads name a value before kernels number their parameters.
std::string valueName(const ValueKey& key);
/// Product of sizes, if they are numbers.
std::optional<int64_t> knownNumel(const SymDims& sizes);

enum class CallKind : uint8_t { Kernel, Library, Reference };
struct ScheduledCall {
    CallKind kind = CallKind::Kernel;
    size_t kernel = 0;                    // index into ScheduledProgram::kernels
    std::vector<ValueKey> bindings;       // of a kernel's buffers, in order
    const Node* node = nullptr;           // of a library or reference call
    const LibraryRow* library = nullptr;  // of a library call
    std::vector<NodeId> nodes;            // computed by it, in graph order
    std::vector<std::string> reasons;
    std::string description;  // "pointwise", "reduction", "library: mm (oneDNN)", "reference: aten.x", "graphs: cond"
    int64_t bytesRead = 0, bytesWritten = 0, flops = 0;
    int64_t bytesSpanned = 0;  // of all its operands and results as they are, read or not
};

/// Memory of a value: only roots have some; views of them are addressed through their own types.
struct ScheduledValue {
    ValueKey key;
    enum class Kind : uint8_t { Input, Constant, Temporary, Output } kind = Kind::Temporary;
    size_t position = 0;               // which input (placeholder order)
    int definedBy = -1, lastUse = -1;  // positions in calls; -1 = before the first
    int over = -1;                     // index of the value whose memory it is written over
    int memoryUntil = -1;              // last use of what lies in its memory, this value and those written over it
};

struct PlannedKernel {
    Kernel kernel;
    LoopPlan plan;
};

class LoweringMemo;

struct ScheduledProgram {
    std::shared_ptr<const Module> module;
    const TargetInfo* target = nullptr;  // of the module's schedule, which it holds
    std::shared_ptr<LoweringMemo> memo;  // the schedule's
    std::vector<PlannedKernel> kernels;  // each structure once
    std::vector<ScheduledCall> calls;    // in execution order
    std::vector<ScheduledValue> values;  // roots, in order of definition
    /// Of the graphs that calls (cond, while_loop) run, by their names in the module.
    std::map<std::string, std::shared_ptr<const ScheduledProgram>> bodies;
};

}  // namespace cutaway
