#include "engine/runtime/cpu/thread_pool.h"

#include <algorithm>

#include "engine/support/threads.h"

namespace cutaway {

ThreadPool::ThreadPool(int threads) : m_size(threads > 0 ? threads : threadCount()) {}

int ThreadPool::threadsFor(int64_t nanoseconds) const { return threadsWorth(nanoseconds, m_size); }

void ThreadPool::run(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body) const {
    runRange(range, unit, std::min(parts, m_size), body);
}

CtParallel lentThreads(const ThreadPool& pool, int threads) {
    const auto run = [](const CtParallel* self, int64_t range, int64_t unit, void (*body)(void*, int64_t, int64_t),
                        void* state) {
        static_cast<const ThreadPool*>(self->pool)->run(range, unit, self->threads, [&](int64_t begin, int64_t end) {
            body(state, begin, end);
        });
    };
    return {const_cast<ThreadPool*>(&pool), threads, run, nullptr, nullptr};
}

}  // namespace cutaway
