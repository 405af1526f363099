// Functions of generated C++ that compute whole vectors of f32 in f64: what those vectors are made of is exact or
// nearly so, and cancels without harm. Each register by itself, since so many steps of a pair would not stay in
// registers.
#include "engine/codegen/cpp_special.h"

namespace cutaway {

// Numbers above 0 that are not infinite; fdlibm's polynomial.
std::string_view cppWideLog() {
    return R"(#if !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX512F__)
FN Vec<double, 8> fmaWide(Vec<double, 8> a, Vec<double, 8> b, Vec<double, 8> c) {
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, (unsigned char)-1, 4);
}
#elif !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX__) && defined(__FMA__)
FN Vec<double, 4> fmaWide(Vec<double, 4> a, Vec<double, 4> b, Vec<double, 4> c) {
    return __builtin_ia32_vfmaddpd256(a, b, c);
}
#else
template <class V> FN V fmaWide(V a, V b, V c) { return a * b + c; }
#endif
// From the highest power on.
template <class V, class... More> FN V polynomialFrom(V x, V sum, double next, More... more) {
    const V made = fmaWide(x, sum, spread<V>(next));
    if constexpr (sizeof...(more) == 0) return made;
    else return polynomialFrom(x, made, more...);
}
template <class V> FN V wideLog(V x) {
    typedef Vec<unsigned long, Of<V>::N> U;
    const U bits = (U)x, above = bits + (0x3ff0000000000000ul - 0x3fe6a09e667f3bcdul), e = above >> 52;
    const V k = (V)(e | 0x4330000000000000ul) - (0x1p52 + 1023.);
    const V f = (V)(bits - ((e - 1023ul) << 52)) - 1., s = f / (f + 2.), z = s * s, h = f * f * 0.5;
    const V r = z * polynomialFrom(z, spread<V>(1.479819860511658591e-01), 1.531383769920937332e-01,
        1.818357216161805012e-01, 2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
        6.666666666666735130e-01);
    return k * 6.93147180369123816490e-01 - ((h - (s * (h + r) + k * 1.90821492927058770002e-10)) - f);
}
)";
}

// With a = |x| below 8 as a (a + 1) ... (a + 7) gamma(a) = gamma(a + 8), of which Stirling's series is exact to f64;
// for negative numbers by gamma(-a) gamma(a) = -pi / (a sin(pi a)). Where the result is about 0, two sums cancel that
// are some 1e-15 wrong, less than half a unit of the smallest result.
std::string_view cppLgamma() {
    return R"(template <class V> FN V lgammaOf(V x) {
    if constexpr (Of<V>::pair) return V{lgammaOf(x.a), lgammaOf(x.b)};
    else {
        typedef Vec<unsigned long, Of<V>::N> U;
        const auto negative = ltLanes(x, V{});
        const V a = (V)((U)x & 0x7ffffffffffffffful), one = spread<V>(1.), inf = spread<V>(__builtin_inf());
        const auto small = ltLanes(a, spread<V>(8.));
        const V t = a * (a + 7.), y = chosen<V>(small, a + 8., a);
        V p = chosen<V>(small, t * (t + 6.) * (t + 10.) * (t + 12.), one);
        auto infinite = eqLanes(a, V{}) | eqLanes(a, inf);
        if (anyOf(negative)) {
            // The distance to the next whole number; numbers from 2^30 on are whole.
            const V n = chosen<V>(ltLanes(a, spread<V>(0x1p30)), a, V{}), d = n - ((n + 0x1.8p52) - 0x1.8p52),
                z = d * d;
            const V sine = (V)((U)(d * polynomialFrom(z, spread<V>(5.392664662608129e-10),
                -2.2948428997269873e-08, 7.952054001475513e-07, -2.1915353447830217e-05,
                4.6630280576761255e-04, -7.3704309457143504e-03, 8.214588661112823e-02, -5.992645293207921e-01,
                2.5501640398773455, -5.16771278004997, 3.141592653589793)) & 0x7ffffffffffffffful);
            infinite = infinite | (negative & eqLanes(d, V{}));
            p = chosen<V>(negative, p * 3.141592653589793 / (a * sine), p);
            p = chosen<V>(infinite, one, p);
        }
        const V u = one / y, w = u * u;
        const V series = u * polynomialFrom(w, spread<V>(6.41025641025641025641e-03),
            -1.91752691752691752692e-03, 8.41750841750841750842e-04, -5.95238095238095238095e-04,
            7.93650793650793650794e-04, -2.77777777777777777778e-03, 8.33333333333333333333e-02);
        const V whole = (y - 0.5) * wideLog(y) - y + 9.18938533204672741780e-01 + series, left = whole - wideLog(p);
        V r = chosen<V>(infinite, inf, chosen<V>(negative, -left, left));
        r = chosen<V>(eqLanes(x, one) | eqLanes(x, spread<V>(2.)), V{}, r);
        return chosen<V>(neLanes(x, x), x, r);
    }
}
FN V_f32 f_lgamma(V_f32 x) { return CONV(lgammaOf(CONV(x, V_f64)), V_f32); }
)";
}

// The quantiles of the normal distribution by Wichura's AS 241, whose third part, for what is nearer to 1 than any f32
// but 1, is left out.
std::string_view cppErfinv() {
    return R"(template <class V> FN V tailOf(V y) {
    if constexpr (Of<V>::pair) return V{tailOf(y.a), tailOf(y.b)};
    else {
        typedef Vec<unsigned long, Of<V>::N> U;
        const V tail = (spread<V>(1.) - (V)((U)y & 0x7ffffffffffffffful)) * 0.5;
        return -wideLog(chosen<V>(gtLanes(tail, V{}), tail, spread<V>(0.5)));
    }
}
template <class V> FN V erfinvOf(V y, V root) {
    if constexpr (Of<V>::pair) return V{erfinvOf(y.a, root.a), erfinvOf(y.b, root.b)};
    else {
        typedef Vec<unsigned long, Of<V>::N> U;
        const V a = (V)((U)y & 0x7ffffffffffffffful), r = spread<V>(0.180625) - a * a * 0.25, s = root - 1.6;
        const V middle = a * 0.5 *
            polynomialFrom(r, spread<V>(2.5090809287301226727e+3), 3.3430575583588128105e+4,
                6.7265770927008700853e+4, 4.5921953931549871457e+4, 1.3731693765509461125e+4,
                1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080) /
            polynomialFrom(r, spread<V>(5.2264952788528545610e+3), 2.8729085735721942674e+4,
                3.9307895800092710610e+4, 2.1213794301586595867e+4, 5.3941960214247511077e+3,
                6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.);
        const V outer =
            polynomialFrom(s, spread<V>(7.74545014278341407640e-4), 2.27238449892691845833e-2,
                2.41780725177450611770e-1, 1.27045825245236838258, 3.64784832476320460504,
                5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734) /
            polynomialFrom(s, spread<V>(1.05075007164441684324e-9), 5.47593808499534494600e-4,
                1.51986665636164571966e-2, 1.48103976427480074590e-1, 6.89767334985100004550e-1,
                1.67638483018380384940, 2.05319162663775882187, 1.);
        V x = chosen<V>(leLanes(a, spread<V>(0.85)), middle, outer) * 7.0710678118654752440e-01;
        x = chosen<V>(eqLanes(a, spread<V>(1.)), spread<V>(__builtin_inf()), x);
        x = (V)((U)x | ((U)y & 0x8000000000000000ul));
        return chosen<V>(leLanes(a, spread<V>(1.)), x, spread<V>(__builtin_nan("")));
    }
}
FN V_f32 f_erfinv(V_f32 x) {
    const V_f64 y = CONV(x, V_f64);
    return CONV(erfinvOf(y, f_sqrt(tailOf(y))), V_f32);
}
)";
}

// Quotients below 2^28 are cut to the right whole number, and their product with y and what it leaves of x are exact.
// The few lanes beyond go to the C library.
std::string_view cppFmod() {
    return R"(FN V_f32 f_fmod(V_f32 x, V_f32 y) {
    const V_f64 a = CONV(x, V_f64), b = CONV(y, V_f64), q = f_trunc(a / b);
    V_f32 r = f_copysign(CONV(sel(eq(q, 0.), a, a - q * b), V_f32), x);
    const V_b far = (ge(q, 0x1p28) | le(q, -0x1p28)) & eq(q - q, 0.);
    if (anyOf(far)) LANES if (far[k]) put(r, k, __builtin_fmodf(x[k], y[k]));
    return r;
}
)";
}

std::string_view cppNextafter() {
    return R"(template <class V> FN V nextOf(V x, V y) {
    if constexpr (Of<V>::pair) return V{nextOf(x.a, y.a), nextOf(x.b, y.b)};
    else {
        typedef Mask<V> I;
        const I sign = (I)spread<V>(-0.), one = (I)V{} + 1;
        const I away = (gtLanes(y, x) & gtLanes(x, V{})) | (ltLanes(y, x) & ltLanes(x, V{}));
        V r = (V)((I)x - 1 + (away & 2));
        r = chosen<V>(eqLanes(x, V{}), (V)(((I)y & sign) | one), r);
        r = chosen<V>(eqLanes(x, y), y, r);
        return chosen<V>(neLanes(x, x) | neLanes(y, y), x + y, r);
    }
}
FN V_f32 f_nextafter(V_f32 x, V_f32 y) { return nextOf(x, y); }
FN V_f64 f_nextafter(V_f64 x, V_f64 y) { return nextOf(x, y); }
)";
}

}  // namespace cutaway
