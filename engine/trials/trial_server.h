#pragma once
// Trials in processes of their own, each forked from one that has everything ready and no threads: starting one costs a
// few milliseconds. A trial that crashes, hangs, forks, takes all memory or ignores signals costs only itself; whatever
// it has started goes with it.
#include "engine/support/process.h"
#include "engine/trials/trial_job.h"

namespace cutaway {

/// Before the answer in shared memory lies a page with what the trial is at.
constexpr size_t kStatusBytes = 4096;

struct TrialLimits {
    double seconds = 60;
    int64_t memoryBytes = 0;  // of address space, beside what the program itself takes; 0: what the machine has left
};

/// Makes one trial at a time. Lives on the thread that made it, and ends with it.
class TrialServer {
  public:
    /// `table`: tensors that many trials use; they are sent once.
    static Result<TrialServer> start(std::shared_ptr<const TensorTable> table);
    TrialServer(TrialServer&&) = default;

    /// Errors: Cancelled; the server itself is gone. Everything that goes wrong in the trial is its outcome.
    Result<TrialOutcome> run(const TrialJob& job, const TrialLimits& limits, const Progress& progress);

  private:
    TrialServer(std::shared_ptr<const TensorTable> table, SharedMemory request, SharedMemory reply, SharedMemory errors,
                ChildProcess child);
    std::string lastWords() const;
    Result<TrialOutcome> outcomeOf(const TrialJob& job, const TrialLimits& limits, const StatusPage& board,
                                   const Progress& progress);

    std::shared_ptr<const TensorTable> m_table;
    SharedMemory m_request, m_reply, m_errors;
    ChildProcess m_child;
};

/// main() of the process that forks: `cutaway-trials REQUEST REPLY ERRORS TENSORS`, descriptors of shared
/// memory.
int trialServerMain(int argc, char** argv);

}  // namespace cutaway
