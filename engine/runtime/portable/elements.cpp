// Elements between memory of every dtype and the types that are computed in.
#include "engine/runtime/portable/elements.h"

namespace cutaway::portable {
namespace {

template <class Stored, class T>
Stored stored(T value) {
    if constexpr (std::is_same_v<Stored, Truth>) return {static_cast<uint8_t>(value != T(0))};
    else if constexpr (std::is_same_v<Stored, HalfComplex>) {
        const auto z = stored<std::complex<float>>(value);
        return {toHalf(z.real()), toHalf(z.imag())};
    } else if constexpr (kIsComplex<Stored>) return Stored(value);
    else if constexpr (kIsComplex<T>) return stored<Stored>(value.real());
    else if constexpr (std::is_same_v<Stored, Half>) return toHalf(static_cast<float>(value));
    else if constexpr (std::is_same_v<Stored, Bfloat>) return toBfloat(static_cast<float>(value));
    else if constexpr (std::is_integral_v<Stored>) return toInteger<Stored>(value);
    else return static_cast<Stored>(value);
}

template <class Visit>
void visitStored(int32_t dtype, Visit&& visit) {
    switch (dtype) {
        case CT_U8: return visit(uint8_t{});
        case CT_I8: return visit(int8_t{});
        case CT_I16: return visit(int16_t{});
        case CT_I32: return visit(int32_t{});
        case CT_I64: return visit(int64_t{});
        case CT_F16: return visit(Half{});
        case CT_F32: return visit(float{});
        case CT_F64: return visit(double{});
        case CT_C32: return visit(HalfComplex{});
        case CT_C64: return visit(std::complex<float>{});
        case CT_C128: return visit(std::complex<double>{});
        case CT_BOOL: return visit(Truth{});
        case CT_BF16: return visit(Bfloat{});
        case CT_U16: return visit(uint16_t{});
        case CT_U32: return visit(uint32_t{});
        default: return visit(uint64_t{});
    }
}

}  // namespace

template <class T>
void load(int32_t dtype, const void* from, int64_t stride, int64_t count, T* to) {
    if constexpr (std::is_same_v<T, float>)
        if (dtype == CT_F16 && stride == 1) return widenHalves(from, count, to);
    visitStored(dtype, [&](auto element) {
        const auto* elements = static_cast<const decltype(element)*>(from);
        if (stride == 1)
            for (int64_t i = 0; i < count; ++i) to[i] = loaded<T>(elements[i]);
        else
            for (int64_t i = 0; i < count; ++i) to[i] = loaded<T>(elements[i * stride]);
    });
}
template <class T>
void store(int32_t dtype, void* to, int64_t stride, int64_t count, const T* from) {
    if constexpr (std::is_same_v<T, float>)
        if (dtype == CT_F16 && stride == 1) return narrowToHalves(from, count, to);
    visitStored(dtype, [&](auto element) {
        auto* elements = static_cast<decltype(element)*>(to);
        if (stride == 1)
            for (int64_t i = 0; i < count; ++i) elements[i] = stored<decltype(element)>(from[i]);
        else
            for (int64_t i = 0; i < count; ++i) elements[i * stride] = stored<decltype(element)>(from[i]);
    });
}
template <class T>
T loadOne(int32_t dtype, const void* from) {
    T value{};
    visitStored(dtype, [&](auto element) { value = loaded<T>(*static_cast<const decltype(element)*>(from)); });
    return value;
}
template <class T>
void storeOne(int32_t dtype, void* to, T value) {
    visitStored(dtype, [&](auto element) {
        using Stored = decltype(element);
        *static_cast<Stored*>(to) = stored<Stored>(value);
    });
}

#define CUTAWAY_COMPUTED_IN(T)                                       \
    template void load(int32_t, const void*, int64_t, int64_t, T*);  \
    template void store(int32_t, void*, int64_t, int64_t, const T*); \
    template T loadOne(int32_t, const void*);                        \
    template void storeOne(int32_t, void*, T);
CUTAWAY_COMPUTED_IN(float)
CUTAWAY_COMPUTED_IN(double)
CUTAWAY_COMPUTED_IN(int64_t)
CUTAWAY_COMPUTED_IN(std::complex<float>)
CUTAWAY_COMPUTED_IN(std::complex<double>)
#undef CUTAWAY_COMPUTED_IN
// Quantized weights, as their products take them.
template void load(int32_t, const void*, int64_t, int64_t, int16_t*);
template void load(int32_t, const void*, int64_t, int64_t, int32_t*);

}  // namespace cutaway::portable
