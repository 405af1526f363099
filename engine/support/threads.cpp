#include "engine/support/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>

// GCC's OpenMP runtime by its functions: a pragma would get another compiler's own runtime, and so a second set of
// threads.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
void omp_set_num_threads(int threads);
}

namespace cutaway {
namespace {

struct Parts {
    int count;
    const std::function<void(int)>* body;
    // Begin and end of the work as thread sanitizers see it: they do not know the runtime's own barriers.
    std::atomic<int> begun{0}, done{0};
    std::atomic<bool> failed{false};
    std::exception_ptr thrown;  // by the first part that throws
};

/// One thread's share; there may be fewer threads than parts.
void runShare(void* data) {
    auto& parts = *static_cast<Parts*>(data);
    static_cast<void>(parts.begun.load(std::memory_order_acquire));
    // Nothing may leave a thread of the runtime.
    try {
        for (int part = omp_get_thread_num(); part < parts.count; part += omp_get_num_threads()) (*parts.body)(part);
    } catch (...) {
        if (!parts.failed.exchange(true)) parts.thrown = std::current_exception();
    }
    parts.done.fetch_add(1, std::memory_order_release);
}

}  // namespace

int threadCount() {
    static const int count = std::max(1, omp_get_max_threads());  // before any are lent
    return count;
}

void lendThreads(int threads) { omp_set_num_threads(threads); }

void runParts(int parts, const std::function<void(int)>& body) {
    if (parts <= 1) return body(0);
    Parts shared{parts, &body, {0}, {0}, {false}, {}};
    shared.begun.store(1, std::memory_order_release);
    GOMP_parallel(runShare, &shared, static_cast<unsigned>(parts), 0);
    static_cast<void>(shared.done.load(std::memory_order_acquire));
    if (shared.thrown) std::rethrow_exception(shared.thrown);
}

void runRange(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body) {
    if (parts <= 1 || range <= unit) {
        if (range > 0) body(0, range);
        return;
    }
    const int64_t step = ((range + parts - 1) / parts + unit - 1) / unit * unit;
    runParts(parts, [&](int part) {
        const int64_t begin = part * step, end = std::min(range, begin + step);
        if (begin < end) body(begin, end);
    });
}

}  // namespace cutaway
