// Elementwise operators of which no kernel is made: on complex numbers, integer powers and divisors, and special
// functions. Each takes all dtypes of its operator.
#include <type_traits>

#include "engine/runtime/portable/elementwise.h"
#include "engine/support/powers.h"
#include "engine/support/special.h"

namespace cutaway::portable {
namespace {

/// f(x) of each element of a parameter, in the type that the result is computed in.
template <class F>
void map(const Run& run, F f, int32_t parameter = 0) {
    const Strided out = run.out();
    const Spread x(run, parameter, out);
    withNumber(out.dtype, [&](auto tag) { elementwise<decltype(tag), 1>(run, out, {&x}, f); });
}
template <class F>
void mapFloat(const Run& run, F f, int32_t parameter = 0) {
    const Strided out = run.out();
    const Spread x(run, parameter, out);
    withFloat(out.dtype, [&](auto tag) { elementwise<decltype(tag), 1>(run, out, {&x}, f); });
}
/// f(a, b) of the first two parameters.
template <class F>
void zip(const Run& run, F f) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    withNumber(out.dtype, [&](auto tag) { elementwise<decltype(tag), 2>(run, out, {&a, &b}, f, out.dtype); });
}
template <class F>
void zipFloat(const Run& run, F f) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    withFloat(out.dtype, [&](auto tag) { elementwise<decltype(tag), 2>(run, out, {&a, &b}, f); });
}

/// The same of functions that are computed in double.
void mapDouble(const Run& run, double (*f)(double)) {
    mapFloat(run, [f](auto x) { return f(static_cast<double>(x)); });
}

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;

// -- arithmetic

template <class T>
T negated(T x) {
    if constexpr (kIsInteger<T>) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
    else return -x;
}
/// (self, other, alpha)
template <int sign>
void sumOfBoth(const Run& run) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    withNumber(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        const T alpha = numberOf<T>(run.call->args[2]);
        const auto summed = [alpha](T x, T y) {
            const T term = productOf(y, alpha);
            if constexpr (sign > 0) return sumOf(x, term);
            else if constexpr (kIsInteger<T>) return sumOf(x, negated(term));
            else return x - term;
        };
        elementwise<T, 2>(run, out, {&a, &b}, summed, out.dtype);
    });
}
void productOfBoth(const Run& run) {
    zip(run, [](auto a, auto b) { return productOf(a, b); });
}
void quotient(const Run& run) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    withNumber(out.dtype, [&](auto tag) {
        elementwise<decltype(tag), 2>(run, out, {&a, &b}, [](auto x, auto y) {
            if constexpr (kIsInteger<decltype(x)>) return x;  // not reached: the result is floating
            else return x / y;
        });
    });
}
void negative(const Run& run) {
    map(run, [](auto x) { return negated(x); });
}
/// Of complex numbers a real one; the most negative integer stays itself.
void absolute(const Run& run) {
    const Strided out = run.out();
    const Spread x(run, 0, out);
    if (x.elements.dtype == CT_C128)
        return elementwise<std::complex<double>, 1>(run, out, {&x}, [](auto z) { return std::abs(z); });
    if (isComplex(x.elements.dtype))
        return elementwise<std::complex<float>, 1>(run, out, {&x}, [](auto z) { return std::abs(z); });
    withReal(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        elementwise<T, 1>(run, out, {&x}, [](T y) { return y < 0 ? negated(y) : y == 0 ? T(0) : y; });
    });
}
void conjugate(const Run& run) {
    map(run, [](auto x) {
        if constexpr (kIsComplex<decltype(x)>) return std::conj(x);
        else return x;
    });
}
/// A function that real and complex numbers have; of integers it is that of floats.
template <class F>
void floatOrComplex(const Run& run, F f) {
    if (isComplex(run.out().dtype))
        return map(run, [f](auto x) {
            if constexpr (kIsComplex<decltype(x)>) return f(x);
            else return x;
        });
    mapFloat(run, f);
}
#define CUTAWAY_PORTABLE_FUNCTION(name, formula)             \
    void name(const Run& run) {                              \
        floatOrComplex(run, [](auto x) { return formula; }); \
    }
CUTAWAY_PORTABLE_FUNCTION(exponential, std::exp(x))
CUTAWAY_PORTABLE_FUNCTION(logarithm, std::log(x))
CUTAWAY_PORTABLE_FUNCTION(root, std::sqrt(x))
CUTAWAY_PORTABLE_FUNCTION(reciprocal, decltype(x)(1) / x)
CUTAWAY_PORTABLE_FUNCTION(sine, std::sin(x))
CUTAWAY_PORTABLE_FUNCTION(cosine, std::cos(x))
CUTAWAY_PORTABLE_FUNCTION(hyperbolicSine, std::sinh(x))
CUTAWAY_PORTABLE_FUNCTION(hyperbolicCosine, std::cosh(x))
#undef CUTAWAY_PORTABLE_FUNCTION

/// A complex number of two real ones: its parts, or its length and its angle.
template <bool polar>
void pair(const Run& run) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    const auto fill = [&](auto tag) {
        using T = decltype(tag);
        elementwise<std::complex<T>, 2>(run, out, {&a, &b}, [](std::complex<T> x, std::complex<T> y) {
            if (!polar) return std::complex<T>(x.real(), y.real());
            return std::complex<T>(x.real() * std::cos(y.real()), x.real() * std::sin(y.real()));
        });
    };
    if (out.dtype == CT_C128) fill(double{});
    else fill(float{});
}
/// (condition, self, other)
void where(const Run& run) {
    const Strided out = run.out();
    const Spread condition(run, 0, out), yes(run, 1, out), no(run, 2, out);
    withNumber(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        using Seen = std::conditional_t<std::is_floating_point_v<T>, T, const T&>;  // lanes, or one of two places
        elementwise<T, 3>(run, out, {&condition, &yes, &no}, [](Seen c, Seen a, Seen b) { return c != T(0) ? a : b; });
    });
}

/// Whether both are compared in double: one is, and is neither a number nor a tensor without dims beside one with dims.
bool comparesDoubles(const Run& run) {
    bool doubles = false, dims = false;
    const auto each = [&](auto body) {
        for (int32_t parameter = 0; parameter < 2; ++parameter)
            if (run.call->args[parameter].kind == CT_OPERAND) body(run.operands[run.call->args[parameter].integer]);
    };
    each([&](const CtTensor& tensor) { dims |= tensor.rank > 0; });
    each([&](const CtTensor& tensor) {
        if (tensor.dtype == CT_C128) doubles |= tensor.rank > 0 || !dims;
        if (tensor.dtype == CT_F64) doubles |= tensor.rank > 0 || !dims;
    });
    return doubles;
}
/// eq and ne of complex numbers, or of tensors without elements.
template <bool equal>
void compare(const Run& run) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    const auto as = [&](auto tag) {
        elementwise<decltype(tag), 2>(run, out, {&a, &b}, [](auto x, auto y) { return (x == y) == equal; });
    };
    if (comparesDoubles(run)) as(std::complex<double>{});
    else as(std::complex<float>{});
}
void logicalNot(const Run& run) {
    const Strided out = run.out();
    const Spread x(run, 0, out);
    elementwise<std::complex<double>, 1>(run, out, {&x}, [](auto z) { return z == 0.0; });
}

// -- integers

int64_t commonDivisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = b == -1 ? 0 : a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? negated(a) : a;
}
template <class F>
void zipIntegers(const Run& run, F f) {
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    elementwise<int64_t, 2>(run, out, {&a, &b}, f);
}
void gcd(const Run& run) {
    zipIntegers(run, [](int64_t a, int64_t b) { return commonDivisor(a, b); });
}
void lcm(const Run& run) {
    zipIntegers(run, [](int64_t a, int64_t b) {
        const int64_t divisor = commonDivisor(a, b), multiple = divisor == 0 ? 0 : productOf(a / divisor, b);
        return multiple < 0 ? negated(multiple) : multiple;  // the least number stays itself
    });
}
void power(const Run& run) {
    const CtArgument& exponent = run.call->args[1];
    const bool literal = exponent.kind != CT_OPERAND;
    const double number = literal ? numberOf<double>(exponent) : 0;
    const Strided out = run.out();
    const Spread a(run, 0, out), b(run, 1, out);
    if (isComplex(out.dtype))
        return withNumber(out.dtype, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (kIsComplex<T>)
                elementwise<T, 2>(
                    run, out, {&a, &b}, [=](T x, T y) { return literal && y == T(2) ? x * x : std::pow(x, y); },
                    out.dtype);
        });
    withReal(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        const auto raised = [=](T x, T y) {
            if constexpr (kIsInteger<T>) return integerPower(x, y);
            else return literal ? knownPower(x, number) : std::pow(x, y);
        };
        elementwise<T, 2>(run, out, {&a, &b}, raised, out.dtype);
    });
}

// -- floats

void timesPowerOfTwo(const Run& run) {
    const Strided out = run.out();
    if (isComplex(out.dtype))
        return withNumber(out.dtype, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (kIsComplex<T>) {
                const Spread a(run, 0, out), b(run, 1, out);
                const bool real = !isComplex(b.elements.dtype);
                elementwise<T, 2>(run, out, {&a, &b}, [=](T x, T y) {
                    return x * (real ? T(std::pow(typename T::value_type(2), y.real())) : std::pow(T(2), y));
                });
            }
        });
    zipFloat(run, [](auto a, auto b) { return a * std::exp2(b); });
}

// -- special functions, in double, also of narrower floats. Those of one number share one loop: their
// work is beyond that of a call.

using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);
template <OfOne f>
void special(const Run& run) {
    mapDouble(run, f);
}
template <OfTwo f>
void specialOfTwo(const Run& run) {
    zipFloat(run, [](auto a, auto b) { return f(static_cast<double>(a), static_cast<double>(b)); });
}
template <int64_t order, bool scaled>
double bessel(double x) {
    return modifiedBessel(order, x, scaled);
}
template <int64_t order, bool scaled>
double secondKind(double x) {
    return modifiedBesselK(order, x, scaled);
}
template <bool upper>
double gammaShare(double a, double x) {
    return incompleteGamma(a, x, upper);
}
/// Degrees are cut to integers; what is not a number, or beyond all integers, has none.
int64_t degreeOf(double n) { return n >= -0x1p62 && n <= 0x1p62 ? static_cast<int64_t>(n) : -1; }
template <double (*f)(double, int64_t)>
double ofDegree(double x, double n) {
    return f(x, degreeOf(n));
}
template <Chebyshev kind, bool shifted>
double chebyshevOf(double x, double n) {
    return chebyshev(kind, shifted ? 2 * x - 1 : x, degreeOf(n));
}
template <bool probabilists, int64_t most>
double hermiteUpTo(double x, double n) {
    return hermite(x, degreeOf(n), probabilists, most);
}
template <bool probabilists>
void hermiteOf(const Run& run) {
    if (run.out().dtype == CT_F64) specialOfTwo<hermiteUpTo<probabilists, 512>>(run);
    else specialOfTwo<hermiteUpTo<probabilists, 128>>(run);
}
void fractionAndExponent(const Run& run) {
    const auto part = [&](int32_t result, auto f) {
        if (!run.wants(result)) return;
        const Strided out = run.out(result);
        const Spread x(run, 0, out);
        withReal(x.elements.dtype, [&](auto tag) { elementwise<decltype(tag), 1>(run, out, {&x}, f); });
    };
    part(0, [](auto x) {
        int power = 0;
        return std::frexp(static_cast<double>(x), &power);
    });
    part(1, [](auto x) {
        int power = 0;
        std::frexp(static_cast<double>(x), &power);
        return power;
    });
}
/// (n, self)
void polygammaOfOrder(const Run& run) {
    const int64_t n = integerOf(*run.call, 0);
    mapFloat(
        run, [n](auto x) { return polygamma(n, static_cast<double>(x)); }, 1);
}

constexpr Function kPointwiseFunctions[] = {
    {"aten.add.Tensor", sumOfBoth<1>},
    {"aten.add.Scalar", sumOfBoth<1>},
    {"aten.sub.Tensor", sumOfBoth<-1>},
    {"aten.sub.Scalar", sumOfBoth<-1>},
    {"aten.mul.Tensor", productOfBoth},
    {"aten.mul.Scalar", productOfBoth},
    {"aten.div.Tensor", quotient},
    {"aten.div.Scalar", quotient},
    {"aten.neg.default", negative},
    {"aten.abs.default", absolute},
    {"aten._conj.default", conjugate},
    {"aten._conj_physical.default", conjugate},
    {"aten.exp.default", exponential},
    {"aten.log.default", logarithm},
    {"aten.sqrt.default", root},
    {"aten.reciprocal.default", reciprocal},
    {"aten.sin.default", sine},
    {"aten.cos.default", cosine},
    {"aten.sinh.default", hyperbolicSine},
    {"aten.cosh.default", hyperbolicCosine},
    {"aten.complex.default", pair<false>},
    {"aten.polar.default", pair<true>},
    {"aten.where.self", where},
    {"aten.eq.Tensor", compare<true>},
    {"aten.eq.Scalar", compare<true>},
    {"aten.ne.Tensor", compare<false>},
    {"aten.ne.Scalar", compare<false>},
    {"aten.logical_not.default", logicalNot},
    {"aten.gcd.default", gcd},
    {"aten.lcm.default", lcm},
    {"aten.pow.Tensor_Scalar", power},
    {"aten.pow.Tensor_Tensor", power},
    {"aten.pow.Scalar", power},
    {"aten.ldexp.Tensor", timesPowerOfTwo},
    {"aten.i0.default", special<bessel<0, false>>},
    {"aten.special_i0e.default", special<bessel<0, true>>},
    {"aten.special_i1.default", special<bessel<1, false>>},
    {"aten.special_i1e.default", special<bessel<1, true>>},
    {"aten.special_erfcx.default", special<scaledErfc>},
    {"aten.special_ndtri.default", special<inverseNormal>},
    {"aten.special_zeta.default", specialOfTwo<zeta>},
    {"aten.special_bessel_j0.default", special<besselJ0>},
    {"aten.special_bessel_j1.default", special<besselJ1>},
    {"aten.special_bessel_y0.default", special<besselY0>},
    {"aten.special_bessel_y1.default", special<besselY1>},
    {"aten.special_modified_bessel_i0.default", special<bessel<0, false>>},
    {"aten.special_modified_bessel_i1.default", special<bessel<1, false>>},
    {"aten.special_modified_bessel_k0.default", special<secondKind<0, false>>},
    {"aten.special_modified_bessel_k1.default", special<secondKind<1, false>>},
    {"aten.special_scaled_modified_bessel_k0.default", special<secondKind<0, true>>},
    {"aten.special_scaled_modified_bessel_k1.default", special<secondKind<1, true>>},
    {"aten.special_spherical_bessel_j0.default", special<sphericalBesselJ0>},
    {"aten.special_airy_ai.default", special<airy>},
    {"aten.igamma.default", specialOfTwo<gammaShare<false>>},
    {"aten.igammac.default", specialOfTwo<gammaShare<true>>},
    {"aten.special_chebyshev_polynomial_t.default", specialOfTwo<chebyshevOf<Chebyshev::T, false>>},
    {"aten.special_chebyshev_polynomial_u.default", specialOfTwo<chebyshevOf<Chebyshev::U, false>>},
    {"aten.special_chebyshev_polynomial_v.default", specialOfTwo<chebyshevOf<Chebyshev::V, false>>},
    {"aten.special_chebyshev_polynomial_w.default", specialOfTwo<chebyshevOf<Chebyshev::W, false>>},
    {"aten.special_shifted_chebyshev_polynomial_t.default", specialOfTwo<chebyshevOf<Chebyshev::T, true>>},
    {"aten.special_shifted_chebyshev_polynomial_u.default", specialOfTwo<chebyshevOf<Chebyshev::U, true>>},
    {"aten.special_shifted_chebyshev_polynomial_v.default", specialOfTwo<chebyshevOf<Chebyshev::V, true>>},
    {"aten.special_shifted_chebyshev_polynomial_w.default", specialOfTwo<chebyshevOf<Chebyshev::W, true>>},
    {"aten.special_hermite_polynomial_h.default", hermiteOf<false>},
    {"aten.special_hermite_polynomial_he.default", hermiteOf<true>},
    {"aten.special_laguerre_polynomial_l.default", specialOfTwo<ofDegree<laguerre>>},
    {"aten.special_legendre_polynomial_p.default", specialOfTwo<ofDegree<legendre>>},
    {"aten.frexp.Tensor", fractionAndExponent},
    {"aten.polygamma.default", polygammaOfOrder},
};

}  // namespace

std::span<const Function> pointwiseFunctions() { return kPointwiseFunctions; }

}  // namespace cutaway::portable
