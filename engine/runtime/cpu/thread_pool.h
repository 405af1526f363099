#pragma once
// A few threads that share the parallel range of one kernel at a time.
#include <cstdint>
#include <functional>
#include <memory>

namespace cutaway {

class ThreadPool {
  public:
    /// `threads` counts the caller; 0 = one per core.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    int size() const;
    /// Calls body(begin, end) for consecutive parts of [0, range), whose bounds are multiples of `unit`; returns when all
    /// are done. One part, on the calling thread, if `parts` is 1.
    void run(int64_t range, int64_t unit, int parts, const std::function<void(int64_t, int64_t)>& body);

  private:
    struct State;
    std::unique_ptr<State> m_state;
};

}  // namespace cutaway
