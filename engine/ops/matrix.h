#pragma once
// Products of concrete matrices of any dtype and strides: what mm, bmm, linear and attention compute with.
#include "engine/ops/eval.h"

namespace cutaway {

/// alpha and beta of the addmm family; `addend` (broadcast to the result) is read only if beta is not 0.
struct ProductScale {
    Tensor addend;
    Scalar alpha = int64_t{1}, beta = int64_t{1};
};

/// result [..., m, n] = alpha * a [..., m, k] * b [..., k, n] + beta * addend. The leading dims of all three are equal.
/// f32, f16 and bf16 go through the library in f32 and are rounded once; everything else is computed by us.
void multiplyMatrices(const Tensor& a, const Tensor& b, Tensor& result, const ProductScale& scale = {});
/// The same without the library, floats summed in double.
void multiplyMatricesPlainly(const Tensor& a, const Tensor& b, Tensor& result, const ProductScale& scale = {});

}  // namespace cutaway
