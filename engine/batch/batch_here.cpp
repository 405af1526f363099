#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "cutaway/guarded.h"
#include "engine/batch/batch_plan.h"
#include "engine/support/file_lock.h"
#include "engine/support/threads.h"

namespace cutaway {

std::vector<const BatchTask*> openBatchTasks(const BatchPlan& plan) {
    std::vector<const BatchTask*> open;
    std::set<std::string_view> seen;
    for (const BatchTask& task : plan.tasks)
        if (seen.insert(task.id).second && !readBatchResult(plan.folder, task.id)) open.push_back(&task);
    // A large one that came last would be alone on the machine.
    std::stable_sort(open.begin(), open.end(),
                     [](const BatchTask* a, const BatchTask* b) { return a->bytes > b->bytes; });
    return open;
}

BatchState batchState(const BatchPlan& plan) {
    BatchState state;
    std::set<std::string_view> seen;
    for (const BatchTask& task : plan.tasks) {
        if (!seen.insert(task.id).second) continue;
        ++state.all;
        const auto result = readBatchResult(plan.folder, task.id);
        state.done += result.has_value();
        state.failed += result && result->verdict != BatchVerdict::Passes;
    }
    return state;
}

namespace {

/// Threads that each run one task after the other, in child processes.
class Local {
  public:
    Local(const BatchPlan& plan, const Progress& progress) : m_plan(plan), m_progress(progress) {
        for (const BatchTask* task : openBatchTasks(plan)) m_waiting.push_back({task, 0});
        m_state = batchState(plan);
        m_state.waiting = m_waiting.size();
    }

    Result<void> run(const std::function<void(const BatchState&)>& watch) {
        if (m_waiting.empty()) return {};
        const int cores = threadCount();
        const int jobs = std::min(m_plan.jobs > 0 ? m_plan.jobs : cores, static_cast<int>(m_waiting.size()));
        const int threads = std::max(1, cores / std::max(1, m_plan.jobs > 0 ? m_plan.jobs : cores));
        std::vector<std::thread> workers;
        for (int i = 0; i < jobs; ++i) workers.emplace_back([this, threads] { work(threads); });
        {
            std::unique_lock lock(m_mutex);
            while (m_ended < jobs) {
                const BatchState now = m_state;
                lock.unlock();
                if (watch) watch(now);
                lock.lock();
                m_changed.wait_for(lock, std::chrono::milliseconds(500));
            }
        }
        for (std::thread& worker : workers) worker.join();
        if (watch) watch(m_state);
        if (m_problem) return *m_problem;
        if (m_progress.cancelled())
            return Error{ErrorCode::Cancelled, "the batch was stopped; the same command goes on", m_plan.folder, {}};
        return {};
    }

  private:
    struct Waiting {
        const BatchTask* task;
        int killed;  // times
    };

    std::optional<Waiting> next() {
        const std::lock_guard lock(m_mutex);
        if (m_waiting.empty() || m_problem || m_progress.cancelled()) return std::nullopt;
        Waiting one = m_waiting.front();
        m_waiting.pop_front();
        --m_state.waiting;
        ++m_state.running;
        return one;
    }
    void ended(Waiting one, const Result<std::optional<BatchResult>>& result) {
        const std::lock_guard lock(m_mutex);
        --m_state.running;
        if (!result) {
            if (!m_problem) m_problem = result.error();
        } else if (const auto& came = *result) {
            ++m_state.done;
            m_state.failed += came->verdict != BatchVerdict::Passes;
        } else if (++one.killed <= m_plan.retries) {
            m_waiting.push_back(one);
            ++m_state.waiting;
        }
        m_changed.notify_all();
    }
    Result<std::optional<BatchResult>> tried(const BatchTask& task, int threads) {
        CT_TRY(auto result, tryBatchTask(task, m_plan.folder, threads, m_progress));
        if (result) CT_TRY_VOID(writeBatchResult(m_plan.folder, task.id, *result));
        return result;
    }
    void work(int threads) {
        while (const auto one = next()) ended(*one, guarded([&] { return tried(*one->task, threads); }));
        const std::lock_guard lock(m_mutex);
        ++m_ended;
        m_changed.notify_all();
    }

    const BatchPlan& m_plan;
    const Progress& m_progress;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Waiting> m_waiting;
    BatchState m_state;
    std::optional<Error> m_problem;
    int m_ended = 0;
};

}  // namespace

Result<void> runBatchHere(const BatchPlan& plan, const std::function<void(const BatchState&)>& watch,
                          const Progress& progress) {
    return Local(plan, progress).run(watch);
}

Result<BatchRun> runBatch(const BatchPlan& plan, BatchPlace place, const std::function<void(const BatchState&)>& watch,
                          const Progress& progress) {
    std::error_code failed;
    std::filesystem::create_directories(plan.folder, failed);
    if (failed)
        return Error{ErrorCode::ToolFailed, "cannot make the batch's folder: " + failed.message(), plan.folder, {}};
    std::string problem;
    const auto lock = FileLock::take((std::filesystem::path(plan.folder) / "lock").string(), 0, &problem);
    if (!lock)
        return Error{
            ErrorCode::ToolFailed, problem.empty() ? "another program works on this batch" : problem, plan.folder, {}};
    CT_TRY_VOID(writeBatchPlan(plan));
    const auto start = std::chrono::steady_clock::now();
    BatchRun run;
    run.known = batchState(plan).done;
    CT_TRY_VOID(place == BatchPlace::Here ? runBatchHere(plan, watch, progress)
                                          : runBatchOnSlurm(plan, watch, progress));
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    CT_TRY(run.report, batchReport(plan));
    return run;
}

Result<void> runBatchTask(const std::string& folder, const std::string& id) {
    CT_TRY(const BatchTask task, plannedTask(folder, id));
    if (readBatchResult(folder, id)) return {};
    // Slurm gives a job the processors that it asked for, and says how many these are.
    const char* given = std::getenv("SLURM_CPUS_PER_TASK");
    CT_TRY(const auto result, tryBatchTask(task, folder, given ? std::max(1, std::atoi(given)) : 1, {}));
    if (!result) return Error{ErrorCode::ToolFailed, "somebody killed the task", id, {}};
    return writeBatchResult(folder, id, *result);
}

}  // namespace cutaway
