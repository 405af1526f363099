#include "engine/loops/cell.h"

#include <cmath>

#include "engine/support/check.h"
#include "engine/support/special.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
namespace {

/// The value as a buffer of the dtype holds it: wrapped to the width of an integer dtype, rounded to that of a float.
/// Floats that do not fit into an integer convert as in tensors (storeElements).
template <class Compute>
Cell stored(DType dtype, Compute value) {
    alignas(8) char element[8];
    storeElements(dtype, element, 1, 1, &value);
    return readElement(element, dtype, 0);
}
Cell stored(DType dtype, bool value) { return stored(dtype, int64_t{value}); }
Cell rounded(DType dtype, double value) { return {dtype == DType::F64 ? value : static_cast<float>(value), 0}; }
bool isUnsignedWide(DType dtype) { return dtype == DType::U64; }

/// Kernels read complex numbers through views as pairs only.
DType partOf(DType dtype) {
    switch (dtype) {
        case DType::C128: return DType::F64;
        case DType::C64: return DType::F32;
        case DType::C32: return DType::F16;
        default: return dtype;
    }
}
uint64_t bits(const Cell& cell) { return static_cast<uint64_t>(cell.whole); }
int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

bool lessThan(DType dtype, const Cell& a, const Cell& b) {
    if (isFloating(dtype)) return a.real < b.real;
    return isUnsignedWide(dtype) ? bits(a) < bits(b) : a.whole < b.whole;
}
bool equalCells(DType dtype, const Cell& a, const Cell& b) {
    return isFloating(dtype) ? a.real == b.real : a.whole == b.whole;
}

Cell divide(const ExprNode& e, const Cell& a, const Cell& b, KernelFault& fault) {
    const DType dtype = e.dtype;
    if (b.whole == 0) {
        fault = KernelFault::DivisionByZero;
        return {};
    }
    if (isUnsignedWide(dtype)) {
        const uint64_t q = bits(a) / bits(b), r = bits(a) % bits(b);
        return {0, wrapped(e.kind == ExprKind::Mod ? r : q)};
    }
    int64_t q = b.whole == -1 ? wrapped(0 - bits(a)) : a.whole / b.whole;
    const uint64_t rest = bits(a) - static_cast<uint64_t>(q) * bits(b);
    const bool adjust = e.kind != ExprKind::Div && rest != 0 && (a.whole < 0) != (b.whole < 0);
    if (e.kind == ExprKind::Mod) return stored(dtype, wrapped(adjust ? rest + bits(b) : rest));
    return stored(dtype, adjust ? q - 1 : q);
}

double floorMod(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

Cell floatArithmetic(const ExprNode& e, std::span<const Cell> in) {
    const auto two = [&](double value) { return rounded(e.dtype, value); };
    const double a = in[0].real, b = in.size() > 1 ? in[1].real : 0;
    switch (e.kind) {
        case ExprKind::Add: return two(a + b);
        case ExprKind::Sub: return two(a - b);
        case ExprKind::Mul: return two(a * b);
        case ExprKind::Div: return two(a / b);
        case ExprKind::Neg: return {-a, 0};
        // The quotient is rounded to the dtype before its floor is taken.
        case ExprKind::FloorDiv: return two(std::floor(two(a / b).real));
        case ExprKind::Mod: return two(floorMod(a, b));
        case ExprKind::Pow:
            return e.dtype == DType::F64 ? two(std::pow(a, b))
                                         : two(std::pow(static_cast<float>(a), static_cast<float>(b)));
        case ExprKind::Min: return {std::isnan(a) ? a : b < a || std::isnan(b) ? b : a, 0};
        case ExprKind::Max: return {std::isnan(a) ? a : b > a || std::isnan(b) ? b : a, 0};
        default: CT_CHECK(false, "every operation on floats is interpreted");
    }
}

Cell wholeArithmetic(const ExprNode& e, std::span<const Cell> in, KernelFault& fault) {
    const bool boolean = e.dtype == DType::Bool;
    const auto chained = [&](auto&& f) {
        uint64_t all = bits(in[0]);
        for (size_t i = 1; i < in.size(); ++i) all = f(all, bits(in[i]));
        return stored(e.dtype, wrapped(all));
    };
    const uint64_t width = static_cast<uint64_t>(byteSize(e.dtype)) * 8;
    switch (e.kind) {
        case ExprKind::Add: return chained([&](uint64_t a, uint64_t b) { return boolean ? a | b : a + b; });
        case ExprKind::Mul: return chained([&](uint64_t a, uint64_t b) { return boolean ? a & b : a * b; });
        case ExprKind::Sub: return chained([&](uint64_t a, uint64_t b) { return boolean ? a ^ b : a - b; });
        case ExprKind::And:
        case ExprKind::BitAnd: return chained([](uint64_t a, uint64_t b) { return a & b; });
        case ExprKind::Or:
        case ExprKind::BitOr: return chained([](uint64_t a, uint64_t b) { return a | b; });
        case ExprKind::BitXor: return chained([](uint64_t a, uint64_t b) { return a ^ b; });
        case ExprKind::Neg: return stored(e.dtype, wrapped(0 - bits(in[0])));
        case ExprKind::Not: return stored(e.dtype, in[0].whole == 0);
        case ExprKind::BitNot: return stored(e.dtype, boolean ? in[0].whole == 0 : ~in[0].whole);
        case ExprKind::Min:
        case ExprKind::Max: {
            Cell best = in[0];
            for (size_t i = 1; i < in.size(); ++i)
                if (e.kind == ExprKind::Min ? lessThan(e.dtype, in[i], best) : lessThan(e.dtype, best, in[i]))
                    best = in[i];
            return best;
        }
        case ExprKind::Div:
        case ExprKind::FloorDiv:
        case ExprKind::Mod: return divide(e, in[0], in[1], fault);
        case ExprKind::ShiftLeft:
            return stored(e.dtype, bits(in[1]) >= width ? 0 : wrapped(bits(in[0]) << bits(in[1])));
        case ExprKind::ShiftRight:
            if (bits(in[1]) >= width)
                return stored(e.dtype, !isUnsigned(e.dtype) && in[0].whole < 0 ? int64_t{-1} : int64_t{0});
            return stored(e.dtype,
                          isUnsignedWide(e.dtype) ? wrapped(bits(in[0]) >> bits(in[1])) : in[0].whole >> in[1].whole);
        default: CT_CHECK(false, "every operation on integers is interpreted");
    }
}

Cell cast(DType from, DType to, const Cell& x) {
    if (isFloating(from)) {
        if (isFloating(to)) return rounded(to, x.real);
        return from == DType::F64 ? stored(to, x.real) : stored(to, static_cast<float>(x.real));
    }
    if (!isFloating(to)) return stored(to, x.whole);
    if (isUnsignedWide(from))
        return rounded(to, to == DType::F64 ? static_cast<double>(bits(x)) : static_cast<float>(bits(x)));
    return rounded(to, to == DType::F64 ? static_cast<double>(x.whole) : static_cast<float>(x.whole));
}

struct UnaryFunction {
    std::string_view name;
    float (*narrow)(float);
    double (*wide)(double);
};
#define CT_STD(f)                                                                 \
    {                                                                             \
#f, [](float x) { return std::f(x); }, [](double x) { return std::f(x); } \
    }
constexpr UnaryFunction kUnaryFunctions[] = {
    CT_STD(exp),
    CT_STD(exp2),
    CT_STD(expm1),
    CT_STD(log),
    CT_STD(log2),
    CT_STD(log10),
    CT_STD(log1p),
    CT_STD(sqrt),
    CT_STD(sin),
    CT_STD(cos),
    CT_STD(tan),
    CT_STD(asin),
    CT_STD(acos),
    CT_STD(atan),
    CT_STD(sinh),
    CT_STD(cosh),
    CT_STD(tanh),
    CT_STD(asinh),
    CT_STD(acosh),
    CT_STD(atanh),
    CT_STD(erf),
    CT_STD(erfc),
    CT_STD(floor),
    CT_STD(ceil),
    CT_STD(trunc),
    {"round", [](float x) { return std::rint(x); }, [](double x) { return std::rint(x); }},
    {"rsqrt", [](float x) { return 1.f / std::sqrt(x); }, [](double x) { return 1 / std::sqrt(x); }},
    {"sigmoid", [](float x) { return 1.f / (1.f + std::exp(-x)); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"lgamma", [](float x) { return static_cast<float>(std::lgamma(static_cast<double>(x))); },
     [](double x) { return std::lgamma(x); }},
    {"digamma", [](float x) { return static_cast<float>(digamma(static_cast<double>(x))); }, digamma},
    {"erfinv", [](float x) { return static_cast<float>(inverseErf(static_cast<double>(x))); }, inverseErf},
};
#undef CT_STD
struct BinaryFunction {
    std::string_view name;
    float (*narrow)(float, float);
    double (*wide)(double, double);
};
#define CT_STD(f)                                                                                          \
    {                                                                                                      \
#f, [](float x, float y) { return std::f(x, y); }, [](double x, double y) { return std::f(x, y); } \
    }
constexpr BinaryFunction kBinary[] = {CT_STD(pow),   CT_STD(atan2),    CT_STD(fmod),
                                      CT_STD(hypot), CT_STD(copysign), CT_STD(nextafter)};
#undef CT_STD

Cell call(const ExprNode& e, std::span<const Cell> in, KernelFault& fault) {
    const DType dtype = e.operands[0]->dtype;
    const std::string_view name = e.name;
    const Cell& x = in[0];
    if (name == "checked_index") {
        if (x.whole >= 0 && x.whole < in[1].whole) return x;
        fault = KernelFault::IndexOutOfRange;
        return {};
    }
    if (name == "quotient") return {0, x.whole / in[1].whole};
    if (name == "remainder") return {0, x.whole % in[1].whole};
    const bool floating = isFloating(dtype);
    if (name == "abs") {
        if (floating) return {std::fabs(x.real), 0};
        return isUnsigned(dtype) || x.whole >= 0 ? x : stored(dtype, wrapped(0 - bits(x)));
    }
    if (name == "isnan") return {0, floating && std::isnan(x.real)};
    if (name == "isinf") return {0, floating && std::isinf(x.real)};
    if (name == "isfinite") return {0, !floating || std::isfinite(x.real)};
    if (name == "signbit") return {0, floating ? std::signbit(x.real) : x.whole < 0};
    const auto narrow = static_cast<float>(x.real);
    if (name == "round_f16") return {halfToFloat(floatToHalf(narrow)), 0};
    if (name == "round_bf16") return {bfloatToFloat(floatToBfloat(narrow)), 0};
    const bool wide = dtype == DType::F64;
    for (const UnaryFunction& f : kUnaryFunctions)
        if (f.name == name) return {wide ? f.wide(x.real) : f.narrow(narrow), 0};
    for (const BinaryFunction& f : kBinary)
        if (f.name == name)
            return {wide ? f.wide(x.real, in[1].real) : f.narrow(narrow, static_cast<float>(in[1].real)), 0};
    CT_CHECK(false, "every function of kernels is interpreted");
}

Cell compared(const ExprNode& e, const Cell& a, const Cell& b) {
    const DType dtype = e.operands[0]->dtype;
    switch (e.kind) {
        case ExprKind::Eq: return {0, equalCells(dtype, a, b)};
        case ExprKind::Ne: return {0, !equalCells(dtype, a, b)};
        case ExprKind::Lt: return {0, lessThan(dtype, a, b)};
        case ExprKind::Gt: return {0, lessThan(dtype, b, a)};
        case ExprKind::Le: return {0, lessThan(dtype, a, b) || equalCells(dtype, a, b)};
        default: return {0, lessThan(dtype, b, a) || equalCells(dtype, a, b)};
    }
}

}  // namespace

Cell literalCell(const Expr& literal) {
    if (literal->kind == ExprKind::Float) return rounded(literal->dtype, literal->real);
    if (isFloating(literal->dtype)) return rounded(literal->dtype, static_cast<double>(literal->integer));
    return stored(literal->dtype, literal->integer);
}

Cell applyOperation(const ExprNode& e, std::span<const Cell> in, KernelFault& fault) {
    switch (e.kind) {
        case ExprKind::Call: return call(e, in, fault);
        case ExprKind::Cast: return cast(e.operands[0]->dtype, e.dtype, in[0]);
        case ExprKind::Where: return in[0].whole ? in[1] : in[2];
        case ExprKind::Eq:
        case ExprKind::Ne:
        case ExprKind::Lt:
        case ExprKind::Le:
        case ExprKind::Gt:
        case ExprKind::Ge: return compared(e, in[0], in[1]);
        default: return isFloating(e.dtype) ? floatArithmetic(e, in) : wholeArithmetic(e, in, fault);
    }
}

Cell readElement(const void* buffer, DType dtype, int64_t index) {
    const DType own = partOf(dtype);
    const auto* at = static_cast<const char*>(buffer) + index * byteSize(own);
    Cell cell;
    if (isFloating(own)) loadElements(own, at, 1, 1, &cell.real);
    else loadElements(own, at, 1, 1, &cell.whole);
    return cell;
}

void writeElement(void* buffer, DType dtype, int64_t index, const Cell& value) {
    auto* at = static_cast<char*>(buffer) + index * byteSize(dtype);
    const auto narrow = static_cast<float>(value.real);
    if (dtype == DType::F64) storeElements(dtype, at, 1, 1, &value.real);
    else if (isFloating(dtype)) storeElements(dtype, at, 1, 1, &narrow);
    else storeElements(dtype, at, 1, 1, &value.whole);
}

void addToElement(void* buffer, DType dtype, int64_t index, const Cell& value) {
    const Cell cell = readElement(buffer, dtype, index);
    const auto whole = static_cast<uint64_t>(cell.whole) + static_cast<uint64_t>(value.whole);
    writeElement(buffer, dtype, index, {cell.real + value.real, static_cast<int64_t>(whole)});
}

}  // namespace cutaway
