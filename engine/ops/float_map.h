#pragma once
// Unary float kernels by function pointer: one instantiation of the strided loop serves every transcendental, where
// the call dominates anyway.
#include "engine/ops/eval.h"

namespace cutaway {

/// result[i] = f(in(0)[i]); f16, bf16 and integers compute in float, f64 in double.
Tensor floatMapWith(const EvalContext& c, float (*narrow)(float), double (*wide)(double));

/// floatMap(c, [](auto x) { return std::exp(x); }); the function must not capture.
template <class F>
Tensor floatMap(const EvalContext& c, F) {
    return floatMapWith(c, [](float x) { return static_cast<float>(F{}(x)); }, [](double x) { return static_cast<double>(F{}(x)); });
}

}  // namespace cutaway
