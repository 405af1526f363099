#pragma once
// The interpreter of host programs: memory, and a run in it. In the worker process it runs compiled kernels.
#include "engine/ops/eval.h"
#include "engine/runtime/cpu/loaded_program.h"
#include "engine/runtime/worker.h"

namespace cutaway {

struct HostRun {
    std::vector<Tensor> outputs;                          // undefined for None
    std::vector<double> stepMicroseconds;                 // median per step
    std::vector<double> totalMilliseconds;                // per timed run
    double milliseconds = 0;                              // of all runs, the first one too
    int64_t memoryBytes = 0;                              // arenas and scratch memory
    std::vector<std::pair<size_t, std::string>> refused;  // steps that no library took, and why
    /// Inputs that the function writes to, as the last run has left them: parameter and value. Not with run.
    std::vector<std::pair<size_t, Tensor>> written;
};

/// The timed runs that follow the one for the results.
struct TimedRuns {
    int repeat = 1;
    bool cold = false;         // no cache has anything of the program's when one begins
    double budgetSeconds = 0;  // none begins that would probably end later, but the first; 0: all of them
};

/// What one run needs of its own: arenas, scratch memory, values. Contexts of one program run at once; one context runs
/// one thing at a time.
class HostContext {
  public:
    /// `apart`: no arena; each value has memory of its own, which ends where it ends, so that sanitizers see overruns.
    HostContext(std::shared_ptr<LoadedProgram> program, size_t function, bool apart = false);
    ~HostContext();
    HostContext(const HostContext&) = delete;
    HostContext& operator=(const HostContext&) = delete;

    /// One run for the results, then `repeat` timed ones, each on the inputs as given. Constant parameters may be
    /// undefined: the program has them. Errors name the call, or the input that does not fit.
    Result<HostRun> run(const std::vector<Tensor>& inputs, int repeat, StatusPage& board);
    /// The same, with outputs and written inputs of the last run where they lie: the next run overwrites them. Outputs
    /// that are constant parameters are undefined.
    Result<HostRun> runInPlace(const std::vector<Tensor>& inputs, const TimedRuns& timed, StatusPage& board);

    /// Before the context goes: memory of its arenas that none of the tensors lies in is given back to the system.
    void keepOnly(const std::vector<Tensor>& kept);

  private:
    Result<HostRun> run(const std::vector<Tensor>& inputs, const TimedRuns& timed, StatusPage& board, bool inPlace);

    class Steps;
    std::shared_ptr<LoadedProgram> m_program;
    size_t m_function;
    std::unique_ptr<Steps> m_steps;
};

/// Memory that ends with the tensor's last element, which begins at the offset.
Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides);

}  // namespace cutaway
