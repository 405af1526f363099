#pragma once
// Workers that wait for their next request, so that most requests start no process.
#include "engine/runtime/worker.h"

namespace cutaway {

struct PooledWorker {
    Worker worker;
    bool waited = false;  // it is not new
};
/// Those that use a GPU have it open, which takes longer than most requests; they end where nothing is asked of them
/// for some seconds, since others may want its memory.
enum class WorkerKind : uint8_t { Host, Device };
/// One that waits, or a new one. Its limits are the machine's, its threads one per core.
Result<PooledWorker> takeWorker(WorkerKind kind = WorkerKind::Host);
/// Lets the worker wait for another request, if it runs and few wait; else it ends.
void giveWorker(Worker worker, WorkerKind kind = WorkerKind::Host);
/// Ends those that wait, with what they keep of weights.
void endIdleWorkers();
/// The numbers of the processes that wait, for tests.
std::vector<int> idleWorkers();

}  // namespace cutaway
