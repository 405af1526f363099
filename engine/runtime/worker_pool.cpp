#include "engine/runtime/worker_pool.h"

#include <mutex>

namespace cutaway {
namespace {

constexpr size_t kMostIdle = 1;  // each may keep the weights of a model

struct Pool {
    std::mutex mutex;
    std::vector<Worker> idle;  // the latest last
};
Pool& pool() {
    static Pool one;
    return one;
}

}  // namespace

Result<TakenWorker> takeWorker() {
    Pool& all = pool();
    {
        const std::lock_guard lock(all.mutex);
        while (!all.idle.empty()) {
            Worker worker = std::move(all.idle.back());
            all.idle.pop_back();
            if (worker.running()) return TakenWorker{std::move(worker), true};
        }
    }
    CT_TRY(Worker worker, Worker::start({}, true));
    return TakenWorker{std::move(worker), false};
}

void giveWorker(Worker worker) {
    std::vector<Worker> ended;  // outside of the lock
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    if (worker.running()) all.idle.push_back(std::move(worker));
    if (all.idle.size() <= kMostIdle) return;
    ended.push_back(std::move(all.idle.front()));
    all.idle.erase(all.idle.begin());
}

void endIdleWorkers() {
    std::vector<Worker> ended;
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    ended.swap(all.idle);
}

std::vector<int> idleWorkers() {
    Pool& all = pool();
    const std::lock_guard lock(all.mutex);
    std::vector<int> processes;
    for (const Worker& worker : all.idle) processes.push_back(worker.process());
    return processes;
}

}  // namespace cutaway
