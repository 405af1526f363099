// Conversion between stored element types and the few types kernels compute in.
#include <cmath>
#include <type_traits>

#include "engine/support/check.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

float halfToFloat(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1Fu, mantissa = bits & 0x3FFu, wide;
    if (exponent == 0x1F) {
        wide = sign | 0x7F800000u | (mantissa << 13);
    } else if (exponent != 0) {
        wide = sign | ((exponent + 112u) << 23) | (mantissa << 13);
    } else if (mantissa == 0) {
        wide = sign;
    } else {  // subnormal: shift until the leading one is in place
        exponent = 113;
        while ((mantissa & 0x400u) == 0) {
            mantissa <<= 1;
            --exponent;
        }
        wide = sign | (exponent << 23) | ((mantissa & 0x3FFu) << 13);
    }
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t floatToHalf(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
    if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65536 and above
    if (magnitude < 0x38800000u) {  // result is subnormal or zero: let the float unit round
        float scaled;
        std::memcpy(&scaled, &magnitude, sizeof scaled);
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled * 16777216.0f)));
    }
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

namespace {

struct Half {
    uint16_t bits;
};
struct Bfloat {
    uint16_t bits;
};
struct Bool8 {
    uint8_t bits;
};
/// Complex of two halves.
struct HalfComplex {
    uint16_t real, imaginary;
};
/// An 8-bit float: e4m3fn (3 bits of mantissa, no infinity) or e5m2 (2 bits, IEEE). `OneZero`: their fnuz forms, whose
/// bias is larger by one, and which have NaN in place of the negative zero, and neither infinities nor other NaN.
template <int Mantissa, bool OneZero = false>
struct Small {
    uint8_t bits;
};
/// e8m0fnu: the power of two of a block's scale; no sign, no zero.
struct Power {
    uint8_t bits;
};
template <class T>
constexpr bool kIsSmall = false;
template <int Mantissa, bool OneZero>
constexpr bool kIsSmall<Small<Mantissa, OneZero>> = true;
template <>
constexpr bool kIsSmall<Power> = true;

template <int Mantissa, bool OneZero>
float smallToFloat(Small<Mantissa, OneZero> small) {
    constexpr int kBias = (Mantissa == 3 ? 7 : 15) + OneZero, kUnit = 1 << Mantissa;
    const int magnitude = small.bits & 0x7F, exponent = magnitude >> Mantissa, fraction = magnitude & (kUnit - 1);
    float value;
    if (OneZero ? small.bits == 0x80 : Mantissa == 3 ? magnitude == 0x7F : magnitude > 0x7C)
        value = std::numeric_limits<float>::quiet_NaN();
    else if (!OneZero && Mantissa == 2 && magnitude == 0x7C) value = std::numeric_limits<float>::infinity();
    else if (exponent == 0) value = std::ldexp(static_cast<float>(fraction), 1 - kBias - Mantissa);
    else value = std::ldexp(static_cast<float>(kUnit + fraction), exponent - kBias - Mantissa);
    return small.bits & 0x80 ? -value : value;
}
float smallToFloat(Power power) {
    return power.bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, power.bits - 127);
}
/// Rounds to nearest even. What is too large becomes infinity in e5m2, the largest number in e4m3fn (since
/// PyTorch 2.13; NaN before), and NaN in the fnuz forms.
template <int Mantissa, bool OneZero>
void floatToSmall(float value, Small<Mantissa, OneZero>& small) {
    constexpr int kBias = (Mantissa == 3 ? 7 : 15) + OneZero;
    constexpr int kTooLarge = OneZero ? 0x80 : Mantissa == 3 ? 0x7E : 0x7C;
    const int sign = std::signbit(value) && !OneZero ? 0x80 : 0;
    const float magnitude = std::fabs(value);
    const auto made = [&](int bits) { small.bits = static_cast<uint8_t>(bits); };
    if (std::isnan(value)) return made(OneZero ? 0x80 : sign | 0x7F);
    if (std::isinf(value)) return made(sign | kTooLarge);
    if (magnitude == 0) return made(sign);
    // In units of the last place, an exponent step is one carry out of the mantissa.
    const int exponent = std::max(std::ilogb(magnitude), 1 - kBias);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, Mantissa - exponent)));
    const int bits = ((exponent + kBias - 1) << Mantissa) + units;
    if (bits >= kTooLarge) return made(sign | kTooLarge);
    made(OneZero && std::signbit(value) && bits != 0 ? bits | 0x80 : sign | bits);
}
/// The nearest power of two by the mantissa's first bit, half of the way upwards, but for subnormal numbers downwards;
/// the sign is dropped. Infinities become NaN.
void floatToSmall(float value, Power& power) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = (bits >> 23) & 0xFFu, fraction = bits & 0x7FFFFFu;
    const bool up = exponent == 0 ? fraction > 0x400000u : exponent < 0xFF && fraction >= 0x400000u;
    power.bits = static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <class Compute, class Stored>
Compute load(Stored value) {
    if constexpr (std::is_same_v<Stored, HalfComplex>)
        return load<Compute>(std::complex<float>(halfToFloat(value.real), halfToFloat(value.imaginary)));
    else if constexpr (std::is_same_v<Stored, Half>) return static_cast<Compute>(halfToFloat(value.bits));
    else if constexpr (std::is_same_v<Stored, Bfloat>) return static_cast<Compute>(bfloatToFloat(value.bits));
    else if constexpr (std::is_same_v<Stored, Bool8>) return static_cast<Compute>(static_cast<int>(value.bits != 0));
    else if constexpr (kIsSmall<Stored>) return static_cast<Compute>(smallToFloat(value));
    else if constexpr (IsComplex<Stored>::value) {
        if constexpr (IsComplex<Compute>::value) return Compute(value);
        else return static_cast<Compute>(value.real());
    } else if constexpr (IsComplex<Compute>::value) return Compute(static_cast<typename Compute::value_type>(value));
    else return static_cast<Compute>(value);
}

/// Converts as x86's cvttss2si and cvttsd2si do: NaN and values out of range become the smallest signed number.
template <class Signed, class Compute>
Signed toSigned(Compute value) {
    const Compute end = -static_cast<Compute>(std::numeric_limits<Signed>::min());
    return value >= -end && value < end ? static_cast<Signed>(value) : std::numeric_limits<Signed>::min();
}
/// Float to integer as PyTorch does it on x86, also where the value does not fit: through a signed register of 32 bits,
/// or of 64 for int64, uint64 and uint8. Of a uint32 from 2^31 (uint64: 2^63) on, that is subtracted first, then added.
template <class Stored, class Compute>
Stored toInteger(Compute value) {
    if constexpr (std::is_integral_v<Compute>) return static_cast<Stored>(value);
    else {
        constexpr bool kWide = sizeof(Stored) == 8 || std::is_same_v<Stored, uint8_t>;
        using Signed = std::conditional_t<kWide, int64_t, int32_t>;
        if constexpr (std::is_unsigned_v<Stored> && sizeof(Stored) >= 4) {
            const Compute half = -static_cast<Compute>(std::numeric_limits<Signed>::min());
            if (value >= half)
                return static_cast<Stored>(toSigned<Signed>(value - half)) ^ (Stored{1} << (sizeof(Stored) * 8 - 1));
        }
        return static_cast<Stored>(toSigned<Signed>(value));
    }
}

template <class Stored, class Compute>
Stored store(Compute value) {
    if constexpr (IsComplex<Stored>::value) return Stored(value);
    else if constexpr (std::is_same_v<Stored, HalfComplex>) {
        const auto wide = store<std::complex<float>>(value);
        return {floatToHalf(wide.real()), floatToHalf(wide.imag())};
    } else if constexpr (IsComplex<Compute>::value && std::is_same_v<Stored, Bool8>)
        return {static_cast<uint8_t>(value != Compute(0))};
    else if constexpr (IsComplex<Compute>::value) return store<Stored>(value.real());
    else if constexpr (std::is_same_v<Stored, Half>) return {floatToHalf(static_cast<float>(value))};
    else if constexpr (std::is_same_v<Stored, Bfloat>) return {floatToBfloat(static_cast<float>(value))};
    else if constexpr (std::is_same_v<Stored, Bool8>) return {static_cast<uint8_t>(value != Compute(0))};
    else if constexpr (kIsSmall<Stored>) {
        Stored small;
        floatToSmall(static_cast<float>(value), small);
        return small;
    } else if constexpr (std::is_integral_v<Stored>) return toInteger<Stored>(value);
    else return static_cast<Stored>(value);
}

template <class Visitor>
void visitStored(DType dtype, Visitor&& visit) {
    switch (dtype) {
        case DType::U8: return visit(uint8_t{});
        case DType::I8: return visit(int8_t{});
        case DType::I16: return visit(int16_t{});
        case DType::I32: return visit(int32_t{});
        case DType::I64: return visit(int64_t{});
        case DType::U16: return visit(uint16_t{});
        case DType::U32: return visit(uint32_t{});
        case DType::U64: return visit(uint64_t{});
        case DType::F16: return visit(Half{});
        case DType::F8E4M3FN: return visit(Small<3>{});
        case DType::F8E5M2: return visit(Small<2>{});
        case DType::F8E4M3FNUZ: return visit(Small<3, true>{});
        case DType::F8E5M2FNUZ: return visit(Small<2, true>{});
        case DType::F8E8M0FNU: return visit(Power{});
        case DType::BF16: return visit(Bfloat{});
        case DType::F32: return visit(float{});
        case DType::F64: return visit(double{});
        case DType::Bool: return visit(Bool8{});
        case DType::C32: return visit(HalfComplex{});
        case DType::C64: return visit(std::complex<float>{});
        case DType::C128: return visit(std::complex<double>{});
        default: CT_CHECK(false, "callers refuse dtypes without arithmetic before they reach element access");
    }
}

}  // namespace

template <class Compute>
void loadElements(DType dtype, const void* data, int64_t stride, int64_t count, Compute* out) {
    visitStored(dtype, [&](auto tag) {
        using Stored = decltype(tag);
        const auto* in = static_cast<const Stored*>(data);
        if (stride == 1)
            for (int64_t i = 0; i < count; ++i) out[i] = load<Compute>(in[i]);
        else if (stride == 0) std::fill_n(out, count, load<Compute>(in[0]));
        else
            for (int64_t i = 0; i < count; ++i) out[i] = load<Compute>(in[i * stride]);
    });
}

template <class Compute>
void storeElements(DType dtype, void* data, int64_t stride, int64_t count, const Compute* in) {
    visitStored(dtype, [&](auto tag) {
        using Stored = decltype(tag);
        auto* out = static_cast<Stored*>(data);
        if (stride == 1)
            for (int64_t i = 0; i < count; ++i) out[i] = store<Stored>(in[i]);
        else
            for (int64_t i = 0; i < count; ++i) out[i * stride] = store<Stored>(in[i]);
    });
}

#define CT_ELEMENTS(Compute)                                                             \
    template void loadElements<Compute>(DType, const void*, int64_t, int64_t, Compute*); \
    template void storeElements<Compute>(DType, void*, int64_t, int64_t, const Compute*);
CT_ELEMENTS(float)
CT_ELEMENTS(double)
CT_ELEMENTS(int64_t)
CT_ELEMENTS(std::complex<float>)
CT_ELEMENTS(std::complex<double>)
#undef CT_ELEMENTS

}  // namespace cutaway
