#pragma once
// Concatenation as copies: what many parts cost least. No kernel chooses among them element by element.
#include <vector>

#include "engine/tensor/tensor.h"

namespace cutaway {

/// Copies the parts one after the other along `dim` into `result`, whose sizes are their sum there and whose dtype is
/// theirs. Layouts are free. Threads take equal shares of the bytes.
void concatenate(const std::vector<const Tensor*>& parts, int64_t dim, Tensor& result, int threads);

}  // namespace cutaway
