#pragma once
// Functions that the standard library has for real numbers only, for complex ones as PyTorch's kernels compute them.
#include <cmath>
#include <complex>

#include "engine/ops/arithmetic.h"
#include "engine/support/complex_logarithms.h"

namespace cutaway {

template <class T>
T exp2Of(T x) {
    if constexpr (kIsComplex<T>) return std::exp(x * static_cast<typename T::value_type>(0.6931471805599453));
    else return std::exp2(x);
}
template <class T>
T log2Of(T x) {
    if constexpr (kIsComplex<T>) return std::log(x) / static_cast<typename T::value_type>(0.6931471805599453);
    else return std::log2(x);
}
/// exp(x) - 1 without cancellation near 0.
template <class T>
T expm1Of(T x) {
    if constexpr (kIsComplex<T>) {
        const auto half = std::sin(x.imag() / 2);
        return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half, std::exp(x.real()) * std::sin(x.imag())};
    } else {
        return std::expm1(x);
    }
}
template <class T>
T log1pOf(T x) {
    if constexpr (kIsComplex<T>) return complexLog1p(x);
    else return std::log1p(x);
}
template <class T>
T sigmoidOf(T x) {
    return T(1) / (T(1) + std::exp(-x));
}

}  // namespace cutaway
