#pragma once
// One engine thread with a queue of tagged jobs. A new job replaces waiting jobs of its tag and asks a running one of
// that tag to stop.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

/// Shared by a job and whoever may stop it.
class CancelToken {
  public:
    void cancel() { m_cancelled.store(true, std::memory_order_relaxed); }
    bool cancelled() const { return m_cancelled.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> m_cancelled{false};
};

/// Given to long work, so that it can say how far it is and ask whether to stop.
struct Progress {
    std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
    /// `fraction` 0..1, or negative when unknown. Called on the engine thread; may be empty.
    std::function<void(double fraction, const std::string& what)> report;

    bool cancelled() const { return cancel->cancelled(); }
    void say(double fraction, const std::string& what) const {
        if (report) report(fraction, what);
    }
};

class JobQueue {
  public:
    JobQueue();
    ~JobQueue();  // cancels what runs, drops what waits, joins
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    /// Runs `job` on the engine thread. The returned token cancels it, running or waiting. What it throws goes to
    /// `failed`, on that thread, as an error in words, and the queue goes on; without `failed` it is logged.
    std::shared_ptr<CancelToken> post(std::string tag, std::function<void(const Progress&)> job,
                                      std::function<void(double, const std::string&)> report = {},
                                      std::function<void(const Error&)> failed = {});
    void cancelAll();
    /// Leaves the running job its thread, with the processor time that nobody else wants, and goes on with what waits
    /// on a new one; for jobs that were cancelled and do not end. False if the token is not the running job's. What
    /// such a job uses must outlive it: programs end by endAllJobs.
    bool leaveBehind(const CancelToken& token);
    /// Waits until nothing runs or waits. For tests and the command line.
    void drain();

  private:
    struct State;
    friend bool endAllJobs(std::chrono::milliseconds patience);
    std::shared_ptr<State> m_state;  // also of the threads that were left behind
};

/// Cancels the jobs of all queues and waits for so long until they have ended, those left behind too. After `false`
/// nothing that jobs use may be destroyed, so the program ends by endProgram (cutaway/program.h).
bool endAllJobs(std::chrono::milliseconds patience);

}  // namespace cutaway
