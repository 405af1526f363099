#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

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

    void loop() {
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

JobQueue::JobQueue() : m_state(std::make_unique<State>()) {
    m_state->thread = std::thread([state = m_state.get()] { state->loop(); });
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

void JobQueue::drain() {
    std::unique_lock lock(m_state->mutex);
    m_state->changed.wait(lock, [&] { return m_state->waiting.empty() && !m_state->running; });
}

}  // namespace cutaway
