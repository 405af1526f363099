#pragma once
// The memory plan of a run: what each value takes in the arena, from which call to which, and what lives at the peak.
#include <map>
#include <set>

#include "cutaway/session.h"

namespace cutaway {

enum class MemoryMaker : uint8_t { Kernel, Library, Reference };
/// "kernel", "library", "reference".
std::string_view nameOf(MemoryMaker maker);

/// A call of the schedule. Calls run in this order.
struct MemoryCall {
    std::string name;  // "kernel3"; of a library or reference call its node
    MemoryMaker maker = MemoryMaker::Kernel;
    std::string kind;            // "pointwise", "reduction", "library: mm (oneDNN)", "reference: aten.sort.default"
    std::vector<NodeKey> nodes;  // that it computes
    std::vector<std::string> nodeNames;
};

/// What a call writes: a result that has memory (views have none), or the workspace of a kernel.
struct MemoryValue {
    enum class Place : uint8_t { Arena, Heap };
    NodeKey node = NodeKey::None;  // of a workspace, the last node of its call
    std::string name;              // the node's, "var_mean[1]" of a tuple's item, "kernel3 workspace"
    std::string type;              // "f32[8, 16]"
    int64_t bytes = 0;             // those between the first and the last element
    /// Bytes from the arena's start, a multiple of 64. What a reference call returns (Place::Heap) has memory of its
    /// own outside of it: there, bytes from the start of a picture of such values, which do not overlap while they
    /// live.
    int64_t offset = 0;
    Place place = Place::Arena;
    int first = 0, last = 0;  // calls between which it lives, both included
    bool output = false;      // returned: it lives to the end
    bool workspace = false;
    std::string over{};  // the value in whose place it is written, which ends with the call before
};

struct MemoryTotal {
    int count = 0;
    int64_t bytes = 0;
};

struct MemoryPlan {
    std::string graphName;  // "forward", "backward"; "" of a run for inference
    std::vector<MemoryCall> calls;
    std::vector<MemoryValue> values;       // in order of their first calls
    MemoryTotal inputs, constants;         // not in the arena: the caller holds them
    int64_t arena = 0;                     // bytes, as a program compiled for these sizes allocates them
    int64_t own = 0;                       // height of the picture of values with memory of their own
    std::vector<int64_t> live;             // bytes that live at each call, in blocks of 64, own memory included
    int peak = -1;                         // the first call at which most live; -1 without calls
    std::map<std::string, int64_t> sizes;  // what stands for size symbols: the example sizes of the file
    /// Those of them that a run finds in its data: taken as large as they can be, the number of elements of that data.
    std::set<std::string> assumed;
    int64_t largestLive() const { return peak < 0 ? 0 : live[static_cast<size_t>(peak)]; }
};
/// Indices of the values that live at a call, the largest first.
std::vector<size_t> livingAt(const MemoryPlan& plan, int call);

/// One of a run for inference or forward mode; forward and backward of one for training. Errors: the run failed; a size
/// that has no example, named.
Result<std::vector<MemoryPlan>> memoryPlans(Session& session, RunId run, const Progress& progress = {});

}  // namespace cutaway
