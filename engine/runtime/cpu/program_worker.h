#pragma once
// The process in which a program runs: loaded once with its code and constants, it is asked for one run after the
// other.
#include <mutex>

#include "engine/runtime/cpu/plan.h"
#include "engine/runtime/worker.h"

namespace cutaway {

struct CpuRunOptions;

class ProgramWorker : public std::enable_shared_from_this<ProgramWorker> {
  public:
    /// Runs in the process that has the program, or in a new one if there is none, if it has another number of threads,
    /// or if the options ask for limits of their own. Only what that process does not have is sent.
    Result<Message> run(const BoundProgram& bound, const CpuRunOptions& options, const Progress& progress);
    /// Its number, for tests; 0 if there is none.
    int process() const;

  private:
    Result<Message> ask(Worker& worker, bool load, const BoundProgram& bound, const std::string& plan,
                        const CpuRunOptions& options, const Progress& progress);
    Result<Message> askLoaded(const BoundProgram& bound, const std::string& plan, const CpuRunOptions& options,
                              const Progress& progress);
    void keepAlive();

    mutable std::mutex m_turn;
    std::optional<Worker> m_worker;
    int m_threads = 0;
    std::string m_loaded;  // the plan that it has
};

/// The worker's end.
Result<Message> answerCompiled(Message& request, Board& board);

}  // namespace cutaway
