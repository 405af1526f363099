#pragma once
// A scheduled program with every number filled in, ready to be sent to another process: no node, no expression, no
// symbol is left, only values by number, calls in order, and how big everything is.
#include <map>
#include <mutex>

#include "engine/codegen/cpp_printer.h"
#include "engine/schedule/schedule.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct PlanValue {
    enum class Kind : uint8_t {
        Given,    // an input or constant; `index` into the tensors that come with the plan
        Arena,    // at `offset` bytes of the arena
        Adopted,  // whatever tensor the reference kernel returned
        View,     // of value `index`, `offset` elements after its first
    };
    Kind kind = Kind::Arena;
    int64_t index = -1, offset = 0;
    DType dtype = DType::F32;
    Dims sizes, strides;
    bool constant = false;  // never changes between runs: libraries may repack it once
    bool written = false;   // Given: the program writes to it
};
/// One function of a kernel.
struct PlanLaunch {
    std::string library, function;
    int64_t range = 1;  // steps of its loop over parts
};
struct PlanCall {
    CallKind kind = CallKind::Kernel;
    std::string function;              // kernel's name, or the op's full name
    std::string library;               // of a library call: the name of its CtLibrary
    std::vector<int64_t> buffers;      // kernel: value numbers
    std::vector<int64_t> sizes;        // kernel: values of its size symbols
    std::vector<PlanLaunch> launches;  // kernel: one after the other
    int64_t nanoseconds = 0;           // kernels, libraries: roughly how long it takes one core
    std::vector<Argument> args;        // others: nodes of Plan::names
    std::string node;                  // the call's name in the graph; of a kernel those of all that it computes
    std::string checking;          // kernel: those whose indices or divisors come from data; empty if there are none
    ValueType type;                // others: result type, sizes as numbers
    std::vector<int64_t> results;  // others: value numbers, -1 for results that are not tensors
    std::vector<std::string> ops;  // the operators that it computes, only where tests ask for faults of kernels
};
struct Plan {
    std::vector<PlanValue> values;
    std::vector<PlanCall> calls;
    std::vector<int64_t> outputs;  // value numbers; -1 for a returned None
    int64_t arenaBytes = 0;
    /// Placeholders that PlanCall::args refer to, and the value number of each by its id.
    std::unique_ptr<Graph> names = std::make_unique<Graph>();
    std::vector<int64_t> numbers;
    int64_t numberOf(const Node& name) const { return numbers[index(name.id())]; }
};

/// What comes in with the plan: inputs in placeholder order (numbers as 0-d tensors), then constants.
struct BoundProgram {
    Plan plan;
    std::vector<Tensor> given;
};
/// Where blocks of these sizes and lifetimes lie. Planning takes longer than a run of a small program, and the next run
/// mostly has the same blocks.
struct KnownArena {
    std::mutex turn;  // guards the rest
    std::vector<MemoryBlock> blocks;
    int64_t bytes = 0;
};
/// Binds size symbols from the inputs' sizes and fills in all numbers. `libraries`: of each kernel where its functions
/// are. Errors name the input that does not fit.
Result<BoundProgram> bindProgram(const ScheduledProgram& program, const std::vector<PrintedKernel>& printed,
                                 const std::vector<std::string>& libraries, const std::vector<Tensor>& inputs,
                                 KnownArena* known = nullptr);

std::string serialize(const Plan& plan);
Result<Plan> deserializePlan(std::string_view bytes);

}  // namespace cutaway
