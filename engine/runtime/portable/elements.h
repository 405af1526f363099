#pragma once
// Elements as tensors store them, and the few types that portable functions compute in: float (of f32 and narrower),
// double, int64 (of all integers and bool) and complex. Conversions round to nearest even; integers wrap.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/libraries/element_bytes.h"
#include "engine/runtime/libraries/halves.h"

namespace cutaway::portable {

struct Half {
    uint16_t bits;
};
struct Bfloat {
    uint16_t bits;
};
struct Truth {
    uint8_t bits;
};
struct HalfComplex {
    Half real, imaginary;
};

inline float wide(Half half) {
    const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
    const uint32_t exponent = (half.bits >> 10) & 0x1Fu, mantissa = half.bits & 0x3FFu;
    uint32_t bits = sign | ((exponent + 112u) << 23) | (mantissa << 13);
    if (exponent == 0x1F) bits = sign | 0x7F800000u | (mantissa << 13);
    if (exponent == 0) {  // a multiple of 2^-24
        const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
        return sign != 0 ? -value : value;
    }
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline float wide(Bfloat bfloat) {
    const uint32_t bits = static_cast<uint32_t>(bfloat.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline Half toHalf(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    const auto made = [&](uint32_t low) { return Half{static_cast<uint16_t>(sign | low)}; };
    if (magnitude > 0x7F800000u) return made(0x7E00u);
    if (magnitude >= 0x47800000u) return made(0x7C00u);  // 65536 and above
    if (magnitude < 0x38800000u) {                       // in units of 2^-24
        float scaled;
        std::memcpy(&scaled, &magnitude, sizeof scaled);
        return made(static_cast<uint32_t>(std::nearbyint(scaled * 16777216.0f)));
    }
    return made((magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13);
}
inline Bfloat toBfloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FC0};
    return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

/// Float to integer as x86 does it, also where the value does not fit: through a signed register.
template <class Stored, class T>
Stored toInteger(T value) {
    if constexpr (std::is_integral_v<T>) return static_cast<Stored>(value);
    else {
        using Signed = std::conditional_t<sizeof(Stored) == 8 || std::is_same_v<Stored, uint8_t>, int64_t, int32_t>;
        const auto cut = [](T x) {
            const T end = -static_cast<T>(std::numeric_limits<Signed>::min());
            return x >= -end && x < end ? static_cast<Signed>(x) : std::numeric_limits<Signed>::min();
        };
        if constexpr (std::is_unsigned_v<Stored> && sizeof(Stored) >= 4) {
            const T half = -static_cast<T>(std::numeric_limits<Signed>::min());
            if (value >= half)
                return static_cast<Stored>(static_cast<Stored>(cut(value - half)) ^
                                           (Stored{1} << (sizeof(Stored) * 8 - 1)));
        }
        return static_cast<Stored>(cut(value));
    }
}

template <class T, class Stored>
T loaded(Stored value) {
    if constexpr (std::is_same_v<Stored, HalfComplex>)
        return loaded<T>(std::complex<float>(wide(value.real), wide(value.imaginary)));
    else if constexpr (std::is_same_v<Stored, Half> || std::is_same_v<Stored, Bfloat>) return loaded<T>(wide(value));
    else if constexpr (std::is_same_v<Stored, Truth>) return T(static_cast<float>(value.bits != 0));
    else if constexpr (kIsComplex<Stored> && !kIsComplex<T>) return loaded<T>(value.real());
    else if constexpr (kIsComplex<Stored>) return T(value);
    else if constexpr (kIsComplex<T>) return T(static_cast<typename T::value_type>(value));
    else if constexpr (std::is_integral_v<T>) return toInteger<T>(value);
    else return static_cast<T>(value);
}
/// The dtype that stores elements as they are computed with.
template <class T>
constexpr int32_t kDtypeOf = CT_I64;
template <>
inline constexpr int32_t kDtypeOf<float> = CT_F32;
template <>
inline constexpr int32_t kDtypeOf<double> = CT_F64;
template <>
inline constexpr int32_t kDtypeOf<std::complex<float>> = CT_C64;
template <>
inline constexpr int32_t kDtypeOf<std::complex<double>> = CT_C128;

using ct::bytesOf;
inline bool isComplex(int32_t dtype) { return dtype == CT_C32 || dtype == CT_C64 || dtype == CT_C128; }
inline bool isFloating(int32_t dtype) {
    return dtype == CT_F16 || dtype == CT_F32 || dtype == CT_F64 || dtype == CT_BF16;
}

// Defined in elements.cpp for the types that are computed in, so that the loops over all dtypes are compiled once.

/// `count` elements from `from` on, `stride` elements apart.
template <class T>
void load(int32_t dtype, const void* from, int64_t stride, int64_t count, T* to);
template <class T>
void store(int32_t dtype, void* to, int64_t stride, int64_t count, const T* from);
/// One element. Calls that are made for each element of many spare the choice between loops.
template <class T>
T loadOne(int32_t dtype, const void* from);
template <class T>
void storeOne(int32_t dtype, void* to, T value);
/// The value after a visit to memory of this dtype.
template <class T>
T rounded(int32_t dtype, T value) {
    std::complex<double> memory;
    storeOne(dtype, &memory, value);
    return loadOne<T>(dtype, &memory);
}

/// Calls body(T{}) with the type that elements of the dtype are computed in.
template <class Body>
void withReal(int32_t dtype, Body&& body) {
    if (dtype == CT_F64) body(double{});
    else if (isFloating(dtype)) body(float{});
    else body(int64_t{});
}
template <class Body>
void withFloat(int32_t dtype, Body&& body) {
    if (dtype == CT_F64) body(double{});
    else body(float{});
}
template <class Body>
void withNumber(int32_t dtype, Body&& body) {
    if (dtype == CT_C128) body(std::complex<double>{});
    else if (isComplex(dtype)) body(std::complex<float>{});
    else withReal(dtype, body);
}
/// The type that long sums are kept in.
template <class Body>
void withWide(int32_t dtype, Body&& body) {
    if (isComplex(dtype)) body(std::complex<double>{});
    else if (isFloating(dtype)) body(double{});
    else body(int64_t{});
}

// Signed overflow is undefined, so integers take a detour.
template <class T>
T sumOf(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
}
/// Of complex numbers by the formula, also where infinities make NaN of it.
template <class T>
T productOf(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (std::is_floating_point_v<T>) return a * b;
    else return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}
template <class T>
bool isNan(T value) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
    else return false;
}

}  // namespace cutaway::portable
