#pragma once
// Arithmetic on single elements as PyTorch defines it, for the types kernels compute in (float, double, int64 and
// complex): integers wrap, floats follow IEEE, floor division and remainder follow Python.
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "engine/support/powers.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

/// A number argument in the compute type.
template <class T>
T scalarAs(const Scalar& scalar) {
    if constexpr (kIsComplex<T>) {
        if (const auto* z = std::get_if<std::complex<double>>(&scalar)) return T(*z);
        return T(static_cast<typename T::value_type>(toDouble(scalar)));
    } else if constexpr (std::is_integral_v<T>) {
        return toInt(scalar);
    } else {
        return static_cast<T>(toDouble(scalar));
    }
}

// Signed overflow is undefined in C++, so integers take a detour through unsigned.
template <class T>
T wrapAdd(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
}
template <class T>
T wrapSub(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    else return a - b;
}
/// Of complex numbers by the formula, as PyTorch has it: where infinities meet, both parts may be NaN.
template <class T>
T wrapMul(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (kIsComplex<T>)
        return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else return a * b;
}
template <class T>
T wrapNeg(T a) {
    return wrapSub(T(0), a);
}

/// Division towards zero. Integer division by zero gives 0 here; PyTorch raises, which kernels check beforehand.
template <class T>
T truncDivide(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b == 0 ? 0 : b == -1 ? wrapNeg(a) : a / b;
    else return std::trunc(a / b);
}

/// Python's //. For floats exactly as Python computes it: from fmod, so that a % b and a // b agree.
template <class T>
T floorDivide(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if (b == -1) return wrapNeg(a);
        const T quotient = a / b;
        return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
    } else {
        if (b == 0) return a / b;
        const T modulus = std::fmod(a, b);
        T quotient = (a - modulus) / b;
        if (modulus != 0 && (b < 0) != (modulus < 0)) quotient -= 1;
        if (quotient == 0) return std::copysign(T(0), a / b);
        T floored = std::floor(quotient);
        if (quotient - floored > T(0.5)) floored += 1;
        return floored;
    }
}

/// Python's %: the sign of the divisor.
template <class T>
T remainderOf(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0 || b == -1) return 0;
        const T rest = a % b;
        return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
    } else {
        const T rest = std::fmod(a, b);
        return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;
    }
}

/// C's %: the sign of the dividend.
template <class T>
T fmodOf(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b == 0 || b == -1 ? 0 : a % b;
    else return std::fmod(a, b);
}

template <class T>
T powerOf(T base, T exponent) {
    if constexpr (std::is_integral_v<T>) return integerPower(base, exponent);
    else return std::pow(base, exponent);
}

template <class T>
bool isNan(T value) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
    else return false;
}
// NaN wins, and of equals the first, as in torch.maximum, torch.clamp and torch.amax: of 0.0 and -0.0 too.
template <class T>
T maximumOf(T a, T b) {
    return !isNan(a) && (b > a || isNan(b)) ? b : a;
}
template <class T>
T minimumOf(T a, T b) {
    return !isNan(a) && (b < a || isNan(b)) ? b : a;
}

}  // namespace cutaway
