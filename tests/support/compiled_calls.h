#pragma once
// What became of calls in compiled programs, and whether results agree.
#include <QString>
#include <vector>

#include "engine/runtime/cpu/cpu_backend.h"

namespace cutaway::testing {

/// Whether the call is left to the operator's own kernel, or a portable function.
bool isLeft(const KernelInfo& kernel);
/// Empty if all agree within `scale` times the tolerance of their dtype.
QString outputDifference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double scale = 1);

}  // namespace cutaway::testing
