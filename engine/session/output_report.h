#pragma once
// What is said of a result: its range, and how far it is from what was expected.
#include "cutaway/session.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// `output` may be undefined, for None; `expected` null for nothing.
OutputReport reportOf(const std::string& name, const Tensor& output, const Tensor* expected);

}  // namespace cutaway
