#pragma once
// Splits the parallel range of a kernel among threads (support/threads.h).
#include <cstdint>
#include <functional>

#include "engine/libraries/library.h"

namespace cutaway {

class ThreadPool {
  public:
    /// `threads` counts the caller; 0 = as many as there are.
    explicit ThreadPool(int threads);
    int size() const { return m_size; }
    /// How many threads are worth waking for work that takes one of them so long.
    int threadsFor(int64_t nanoseconds) const;
    /// runRange in at most so many parts.
    void run(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body) const;

  private:
    int m_size = 1;
};

/// Runs a library's parallel loops on the pool, without a random generator's state. The pool outlives it.
CtParallel lentThreads(const ThreadPool& pool, int threads);

}  // namespace cutaway
