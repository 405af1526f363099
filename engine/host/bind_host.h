#pragma once
// Numbers for the symbols of a host function: one set of sizes, as the executor runs it.
#include "engine/host/host_program.h"
#include "engine/interpret/specialize.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct BoundValue {
    Dims sizes, strides;
    int64_t bytes = 0;   // from its first element to the end of its last
    int64_t offset = 0;  // Slot: bytes after the start of the segment's memory; View: elements
};
struct BoundStep {
    std::vector<int64_t> sizes, ranges;  // of a kernel; no ranges if nothing is to be stored
    int64_t nanoseconds = 0;             // roughly how long it takes one core
    std::vector<Argument> args;
    ValueType type;
};
/// Steps of one segment, and the values that they make. Vectors are as long as the function's; what belongs to another
/// segment is empty.
struct BoundFunction {
    std::vector<BoundValue> values;
    std::vector<BoundStep> steps;
    std::vector<int64_t> bytes;  // of each segment's memory
    /// With symbols: HostFunction::names once more for each segment, with numbers in their types, for the nodes of
    /// BoundStep::args. Ids are the same.
    std::vector<std::shared_ptr<const Graph>> names;
    int64_t arenaBytes() const;
};

/// What the inputs say of the symbols. Inputs in the order of the parameters; numbers are 0-d tensors. Errors name the
/// input that does not fit the function: its dtype, rank, a size, a guard that does not hold, or a value outside the
/// range that was exported.
Result<SymbolValues> bindSymbols(const HostFunction& function, const std::vector<Tensor>& inputs);
/// The tensor with these strides; a copy if it has others.
Tensor laidOut(const Tensor& tensor, const Dims& strides);
/// AsGiven: inputs that are constants stay as they are, since whoever runs the function copies those once.
enum class Constants : uint8_t { LaidOut, AsGiven };
/// The inputs with the strides that the function walks memory by; copies where theirs are others.
Result<std::vector<Tensor>> laidOut(const HostFunction& function, const std::vector<Tensor>& inputs,
                                    const SymbolValues& sizes, Constants constants = Constants::LaidOut);
/// Fills in a segment for these sizes, which must be known for it. Errors: a size that is negative or does not fit.
Result<void> bindSegment(const HostProgram& program, const HostFunction& function, size_t segment,
                         const SymbolValues& sizes, BoundFunction& bound);
/// Values and memory of the first segment, without steps: all that is known before a run.
Result<BoundFunction> bindMemory(const HostFunction& function, const SymbolValues& sizes);
/// The same of all segments, for sizes of which none is left to be found.
Result<BoundFunction> bindAllMemory(const HostFunction& function, const SymbolValues& sizes);

}  // namespace cutaway
