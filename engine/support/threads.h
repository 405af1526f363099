#pragma once
// The one set of threads that work is split among: those of the OpenMP runtime that oneDNN runs on. With a second set
// each would wait for cores that the other one's spin on.
#include <cstdint>
#include <functional>

namespace cutaway {

/// As many as the runtime has, one per core unless the environment says otherwise.
int threadCount();
/// How many of `most` threads are worth waking for work that takes one of them so long: one that sleeps takes a while
/// to come, and on a busy machine a long while.
inline int threadsWorth(int64_t nanoseconds, int most) {
    constexpr int64_t kWorthWaking = 50'000;
    const int64_t worth = nanoseconds / kWorthWaking;
    return worth < 1 || most < 1 ? 1 : worth < most ? static_cast<int>(worth) : most;
}
/// Estimates of such times. Operations per nanosecond of one core, in a library's matrix product and in a kernel (in
/// units of the costs by which the scheduler weighs what it fuses), and bytes per nanosecond from memory.
constexpr int64_t kLibraryOperationsPerNanosecond = 40, kKernelOperationsPerNanosecond = 24, kBytesPerNanosecond = 10;
/// From now on library calls (oneDNN) of the calling thread are split among so many threads.
void lendThreads(int threads);
/// Calls body(0) ... body(parts - 1), each once, on up to so many threads; returns when all are done. What one throws
/// is thrown then; the other threads do their share all the same.
void runParts(int parts, const std::function<void(int)>& body);
/// Calls body(begin, end) for consecutive parts of [0, range), whose bounds are multiples of `unit`; returns when all
/// are done. One part, on the calling thread, if `parts` is 1.
void runRange(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body);

}  // namespace cutaway
