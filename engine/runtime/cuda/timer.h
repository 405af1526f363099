#pragma once
// Small graphs of products and what pads their operands, run on the GPU to see how long they take (cuda_device.h says
// of which calls).
#include <memory>

#include "engine/ir/module.h"
#include "engine/runtime/cuda/device.h"

namespace cutaway::cuda {

/// Holds what all graphs share: the compiled kernels, cuBLASLt with its workspace, and what the cache is emptied with.
class Timer {
  public:
    /// `device` outlives it.
    static Result<Timer> open(const Device& device);
    Timer(Timer&&) noexcept;
    ~Timer();

    /// Best time of one run in milliseconds, with random numbers as inputs. Errors: a call that is not covered, by
    /// name; memory.
    Result<double> time(const Module& module, bool tf32);

  private:
    struct State;
    explicit Timer(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

}  // namespace cutaway::cuda
