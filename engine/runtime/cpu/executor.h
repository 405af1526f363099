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
    int threads = 0;
    bool apart = false;  // no arena: as CpuRunOptions::apart
};
class Executor;

/// A plan with its library, constants and memory, run as often as one likes.
class LoadedPlan {
  public:
    /// `given`: constants, which are read where they lie, and inputs, whose memory is taken over.
    static Result<std::unique_ptr<LoadedPlan>> load(Plan plan, std::vector<Tensor> given,
                                                    const ExecutionOptions& options);
    ~LoadedPlan();
    /// One run for the results, then `repeat` timed ones, each on the inputs as given: those that are not constants, in
    /// the order of the plan. Errors name the call.
    Result<ExecutionResult> run(const std::vector<Tensor>& inputs, int repeat, Board& board);

  private:
    explicit LoadedPlan(Plan plan);
    Plan m_plan;
    std::unique_ptr<Executor> m_executor;
};
/// Memory that ends with the tensor's last element, which begins at the offset.
Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides);

}  // namespace cutaway
