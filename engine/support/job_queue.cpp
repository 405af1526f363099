#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "cutaway/guarded.h"
#include "cutaway/jobs.h"
#include "engine/support/fault_points.h"
#include "engine/support/log.h"

namespace cutaway {
namespace {

struct Job {
    std::string tag;
    std::function<void(const Progress&)> run;
    Progress progress;
    std::function<void(const Error&)> failed;
};

}  // namespace

struct JobQueue::State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> waiting;
    std::string runningTag;
    std::shared_ptr<CancelToken> running;  // null when idle
    bool stopping = false;
    std::thread thread;
    int turn = 0;        // of the thread that does the work
    int leftBehind = 0;  // jobs that still run on earlier ones

    void begin(const std::shared_ptr<State>& self) {
        thread = std::thread([self, own = turn] { self->loop(own); });
    }
    void loop(int own) {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return stopping || !waiting.empty(); });
            if (stopping) return;
            Job job = std::move(waiting.front());
            waiting.pop_front();
            runningTag = job.tag;
            running = job.progress.cancel;
            lock.unlock();
            runOne(job);
            // The closure's captures die here, on the engine thread, before anybody is told that the job is over.
            job = {};
            lock.lock();
            if (own != turn) {
                --leftBehind;
                return;
            }
            running = nullptr;
            runningTag.clear();
            changed.notify_all();
        }
    }
    static void runOne(const Job& job) {
        if (job.progress.cancelled()) return;
        // A job that throws must not take the engine thread, and with it the session, down, nor leave anybody waiting
        // for it.
        try {
            faultPoint("job", job.tag);
            job.run(job.progress);
        } catch (...) {
            tell(job, currentError());
        }
    }
    static void tell(const Job& job, const Error& error) noexcept {
        try {
            if (job.failed) job.failed(error);
            else logWarning("job '" + job.tag + "' failed: " + error.text());
        } catch (...) {
            std::fputs("a job failed, and there is no memory to say more\n", stderr);
        }
    }
    void cancelEverything() {
        for (const Job& job : waiting) job.progress.cancel->cancel();
        waiting.clear();
        if (running) running->cancel();
    }
};

namespace {

/// States of all queues, so that a program can wait for them.
struct QueueRegistry {
    std::mutex mutex;
    std::vector<std::weak_ptr<void>> states;
};
QueueRegistry& queueRegistry() {
    static QueueRegistry one;
    return one;
}

}  // namespace

JobQueue::JobQueue() : m_state(std::make_shared<State>()) {
    m_state->begin(m_state);
    QueueRegistry& registry = queueRegistry();
    const std::lock_guard lock(registry.mutex);
    std::erase_if(registry.states, [](const auto& state) { return state.expired(); });
    registry.states.push_back(m_state);
}

JobQueue::~JobQueue() {
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->cancelEverything();
        m_state->stopping = true;
    }
    m_state->changed.notify_all();
    m_state->thread.join();
}

std::shared_ptr<CancelToken> JobQueue::post(std::string tag, std::function<void(const Progress&)> job,
                                            std::function<void(double, const std::string&)> report,
                                            std::function<void(const Error&)> failed) {
    Progress progress;
    progress.report = std::move(report);
    std::shared_ptr<CancelToken> token = progress.cancel;
    {
        const std::lock_guard lock(m_state->mutex);
        for (const Job& other : m_state->waiting)
            if (other.tag == tag) other.progress.cancel->cancel();
        std::erase_if(m_state->waiting, [&](const Job& other) { return other.tag == tag; });
        if (m_state->running && m_state->runningTag == tag) m_state->running->cancel();
        m_state->waiting.push_back({std::move(tag), std::move(job), std::move(progress), std::move(failed)});
    }
    m_state->changed.notify_all();
    return token;
}

void JobQueue::cancelAll() {
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->cancelEverything();
    }
    m_state->changed.notify_all();
}

bool JobQueue::leaveBehind(const CancelToken& token) {
    const std::lock_guard lock(m_state->mutex);
    if (m_state->running.get() != &token || m_state->stopping) return false;
    const sched_param whatever{};
    ::pthread_setschedparam(m_state->thread.native_handle(), SCHED_IDLE, &whatever);
    m_state->thread.detach();
    ++m_state->turn;
    ++m_state->leftBehind;
    m_state->running = nullptr;
    m_state->runningTag.clear();
    m_state->begin(m_state);
    m_state->changed.notify_all();
    return true;
}

bool endAllJobs(std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds kBreath{2};
    std::vector<std::shared_ptr<JobQueue::State>> states;
    {
        QueueRegistry& registry = queueRegistry();
        const std::lock_guard lock(registry.mutex);
        for (const auto& state : registry.states)
            if (auto there = std::static_pointer_cast<JobQueue::State>(state.lock()))
                states.push_back(std::move(there));
    }
    const auto isIdle = [](const std::shared_ptr<JobQueue::State>& state) {
        const std::lock_guard lock(state->mutex);
        state->cancelEverything();
        return !state->running && state->leftBehind == 0;
    };
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!std::all_of(states.begin(), states.end(), isIdle)) {
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(kBreath);
    }
    return true;
}

void JobQueue::drain() {
    std::unique_lock lock(m_state->mutex);
    m_state->changed.wait(lock, [&] { return m_state->waiting.empty() && !m_state->running; });
}

}  // namespace cutaway
