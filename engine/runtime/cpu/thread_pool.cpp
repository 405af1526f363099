#include "engine/runtime/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace cutaway {
namespace {
void pauseBriefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}
}  // namespace

struct ThreadPool::State {
    std::mutex mutex;
    std::condition_variable wake, finished;
    std::vector<std::thread> threads;
    std::atomic<uint64_t> generation{0};
    std::atomic<int> running{0};
    bool stopping = false;
    const std::function<void(int64_t, int64_t)>* body = nullptr;
    int64_t range = 0, step = 0;
    int parts = 0;

    void runPart(int part) const {
        const int64_t begin = part * step, end = std::min(range, begin + step);
        if (begin < end) (*body)(begin, end);
    }
    void loop(int part) {
        uint64_t seen = 0;
        while (true) {
            // Kernels follow each other closely: a short look before sleeping saves a system call per kernel.
            for (int i = 0; i < 4000 && generation.load(std::memory_order_acquire) == seen; ++i) pauseBriefly();
            if (generation.load(std::memory_order_acquire) == seen) {
                std::unique_lock lock(mutex);
                wake.wait(lock, [&] { return stopping || generation.load() != seen; });
            }
            if (stopping) return;
            seen = generation.load(std::memory_order_acquire);
            if (part < parts) runPart(part);
            if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                const std::lock_guard lock(mutex);
                finished.notify_one();
            }
        }
    }
};

ThreadPool::ThreadPool(int threads) : m_state(std::make_unique<State>()) {
    if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int i = 1; i < threads; ++i) m_state->threads.emplace_back([state = m_state.get(), i] { state->loop(i); });
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->stopping = true;
        m_state->generation.fetch_add(1);
    }
    m_state->wake.notify_all();
    for (std::thread& thread : m_state->threads) thread.join();
}

int ThreadPool::size() const { return static_cast<int>(m_state->threads.size()) + 1; }

void ThreadPool::run(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body) {
    parts = std::min(parts, size());
    if (parts <= 1 || range <= unit) {
        if (range > 0) body(0, range);
        return;
    }
    State& s = *m_state;
    {
        const std::lock_guard lock(s.mutex);
        s.body = &body;
        s.range = range;
        s.step = ((range + parts - 1) / parts + unit - 1) / unit * unit;
        s.parts = parts;
        s.running.store(static_cast<int>(s.threads.size()));
        s.generation.fetch_add(1, std::memory_order_release);
    }
    s.wake.notify_all();
    s.runPart(0);
    for (int i = 0; i < 20000 && s.running.load(std::memory_order_acquire) != 0; ++i) pauseBriefly();
    if (s.running.load(std::memory_order_acquire) != 0) {
        std::unique_lock lock(s.mutex);
        s.finished.wait(lock, [&] { return s.running.load() == 0; });
    }
}

}  // namespace cutaway
