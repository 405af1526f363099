#pragma once
// Kernels as text, and back.
//
//   softmax(b0: f32!, b1: f32, s0)                     buffers by number, "!" where it writes; then its sizes
//   for x0 < s0:                                       outer loops
//     v0 = max(x2 < 40: b1[40*x0 + x2])                v0 stands for the expression, wherever it is read again
//     b0[40*x0 + x1] = exp(b1[40*x0 + x1] - v0)/sum(x3 < 40: exp(b1[40*x0 + x3] - v0)) for x1 < 40
//
// A literal has the dtype of what it is combined with where that fits, else i64 or f32; an expression has the dtype of
// its operands, a load that of its buffer. What has another says so behind it: 1.0_f64, (b0[x0] + 1)_i64. Casts are
// calls of a dtype: f32(b1[x0]). "#" begins a comment line.
#include <string>
#include <string_view>

#include "cutaway/result.h"
#include "engine/loops/kernel.h"

namespace cutaway {

std::string text(const Kernel& kernel);
/// The kernel whose text this is. Errors name the line, and what is expected there.
Result<Kernel> parseKernel(std::string_view text);

}  // namespace cutaway
