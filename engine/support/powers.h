#pragma once
// Powers as PyTorch's kernels compute them.
#include <cmath>
#include <cstdint>

namespace cutaway {

/// By squaring, wrapping; a negative exponent gives 0 unless the base is 1 or -1.
template <class T>
T integerPower(T base, T exponent) {
    if (exponent < 0 && base == -1) return exponent % 2 == 0 ? 1 : -1;
    if (exponent < 0) return base == 1 ? 1 : 0;
    const auto product = [](T a, T b) {  // signed overflow is undefined
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    };
    T result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = product(result, base);
        base = product(base, base);
    }
    return result;
}
/// The exponents that PyTorch's kernels know: roots and products in place of pow, which differ from it at -0.0 and
/// -inf and in the last place.
template <class T>
T knownPower(T base, double exponent) {
    if (exponent == 0.5) return std::sqrt(base);
    if (exponent == -0.5) return T(1) / std::sqrt(base);
    if (exponent == 2) return base * base;
    if (exponent == 3) return base * base * base;
    if (exponent == -2) return T(1) / (base * base);
    return std::pow(base, static_cast<T>(exponent));
}

}  // namespace cutaway
