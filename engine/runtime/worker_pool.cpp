#include "engine/runtime/worker_pool.h"

#include <array>
#include <mutex>

namespace cutaway {
namespace {

constexpr size_t kMostIdle = 1;  // of a kind: each may keep the weights of a model

struct Pool {
    std::mutex mutex;
    std::array<std::vector<Worker>, 2> idle;  // by kind, the latest last
    std::vector<Worker>& of(WorkerKind kind) { return idle[static_cast<size_t>(kind)]; }
};
Pool& pool() {
    static Pool one;
    return one;
}

}  // namespace

Result<PooledWorker> takeWorker(WorkerKind kind) {
    Pool& all = pool();
    {
        const std::lock_guard lock(all.mutex);
        std::vector<Worker>& idle = all.of(kind);
        while (!idle.empty()) {
            Worker worker = std::move(idle.back());
            idle.pop_back();
            if (worker.running()) return PooledWorker{std::move(worker), true};
        }
    }
    WorkerOptions how;
    how.device = kind == WorkerKind::Device;
    CT_TRY(Worker worker, Worker::start(how, true));
    return PooledWorker{std::move(worker), false};
}

void giveWorker(Worker worker, WorkerKind kind) {
    std::vector<Worker> ended;  // outside of the lock
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    std::vector<Worker>& idle = all.of(kind);
    if (worker.running()) idle.push_back(std::move(worker));
    if (idle.size() <= kMostIdle) return;
    ended.push_back(std::move(idle.front()));
    idle.erase(idle.begin());
}

void endIdleWorkers() {
    std::array<std::vector<Worker>, 2> ended;
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    ended.swap(all.idle);
}

std::vector<int> idleWorkers() {
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    std::vector<int> processes;
    for (const std::vector<Worker>& idle : all.idle)
        for (const Worker& worker : idle) processes.push_back(worker.process());
    return processes;
}

}  // namespace cutaway
