#pragma once
// Unary float kernels by function pointer: one instantiation of the strided loop serves every transcendental, where
// the call dominates anyway.
#include "engine/ops/kernels.h"

namespace cutaway {

/// result[i] = f(in(0)[i]); f16, bf16 and integers compute in float, f64 in double.
Tensor floatMapWith(const EvalContext& c, float (*narrow)(float), double (*wide)(double));

/// floatMap(c, [](auto x) { return std::exp(x); }); the function must not capture.
template <class F>
Tensor floatMap(const EvalContext& c, F) {
    return floatMapWith(
        c, [](float x) { return static_cast<float>(F{}(x)); }, [](double x) { return static_cast<double>(F{}(x)); });
}

/// The same for functions that complex numbers have too.
template <class F>
Tensor complexMap(const EvalContext& c, F f) {
    const DType dtype = c.resultType().dtype;
    if (!isComplex(dtype)) return floatMap(c, f);
    Tensor out = c.result();
    if (dtype == DType::C128) elementwise<std::complex<double>, 1>(out, {c.in(size_t{0})}, f);
    else elementwise<std::complex<float>, 1>(out, {c.in(size_t{0})}, f);
    return out;
}

}  // namespace cutaway
