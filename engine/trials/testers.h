#pragma once
// Several trials at once: threads, each with the process or the command that makes its trials.
#include <condition_variable>
#include <deque>
#include <future>
#include <thread>

#include "engine/trials/trial_server.h"

namespace cutaway {

/// Makes one trial after the other, on one thread.
class Tester {
  public:
    virtual ~Tester() = default;
    virtual Result<TrialOutcome> test(const TrialJob& job, const Progress& progress) = 0;
};
using MakeTester = std::function<Result<std::unique_ptr<Tester>>()>;

/// Trials in forked processes.
MakeTester forkingTesters(std::shared_ptr<const TensorTable> table, const TrialLimits& limits);
/// A command on the graph as a Python file, or a plugin's oracle (oracleOf). `match`: the text in its output that means
/// failure; empty: its exit status.
MakeTester commandTesters(const std::string& command, const std::string& match, const TrialLimits& limits);

class TesterPool {
  public:
    TesterPool(int threads, MakeTester make);
    ~TesterPool();
    int size() const { return static_cast<int>(m_threads.size()); }
    std::future<Result<TrialOutcome>> submit(TrialJob job, std::shared_ptr<CancelToken> cancel);

  private:
    struct Task {
        TrialJob job;
        std::shared_ptr<CancelToken> cancel;
        std::promise<Result<TrialOutcome>> answer;
    };
    void work(const MakeTester& make);

    std::mutex m_mutex;
    std::condition_variable m_some;
    std::deque<Task> m_tasks;
    bool m_ending = false;
    std::vector<std::thread> m_threads;
};

/// The runnable Python file of a job, which takes its inputs from a file beside it where there are values.
Result<std::string> runnableOf(const TrialJob& job);
/// Writes runnableOf(job) as `file` and, up to 16 MiB, its inputs beside it.
Result<void> writeRunnable(const TrialJob& job, const std::string& file);

}  // namespace cutaway
