#pragma once
// Runs a plan against a compiled library, in the worker process.
#include "engine/runtime/cpu/plan.h"
#include "engine/runtime/worker.h"

namespace cutaway {

struct ExecutionResult {
    std::vector<Tensor> outputs;            // of the first run; undefined for None
    std::vector<double> callMicroseconds;   // median per call
    std::vector<double> totalMilliseconds;  // per timed run
};
struct ExecutionOptions {
    int repeat = 0, threads = 0;
    bool apart = false;  // no arena: as CpuRunOptions::apart
};
/// One run for the results, then `repeat` timed ones. `library` may be empty if no call is a kernel. Errors name the
/// call.
Result<ExecutionResult> execute(const Plan& plan, const std::vector<Tensor>& given, const std::string& library,
                                const ExecutionOptions& options, Board& board);
/// Memory that ends with the tensor's last element, which begins at the offset.
Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides);

}  // namespace cutaway
