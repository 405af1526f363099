#pragma once
// Small graphs of products and what pads their operands, run on the GPU to see how long they take (cuda_device.h says of which calls).
#include "engine/ir/module.h"
#include "engine/runtime/cuda/device.h"

namespace cutaway::cuda {

/// Best time of one run in milliseconds, with random numbers as inputs. Errors: a call that is not covered, by name; memory.
Result<double> timeGraph(const Device& device, const Module& module, bool tf32);

}  // namespace cutaway::cuda
