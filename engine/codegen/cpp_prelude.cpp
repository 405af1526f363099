#include "engine/codegen/cpp_prelude.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "engine/codegen/cpp_special.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct Snippet {
    std::string_view name, needs;  // needs: names separated by spaces
    std::string_view text;
};

// Bounds that let NaN through.
constexpr std::string_view kBounds = R"(#if defined(__AVX512F__) && !defined(__clang__)
FN V_f32 atMost(V_f32 x, float most) { return __builtin_ia32_minps512_mask(bc_f32(most), x, x, (unsigned short)-1, 4); }
FN V_f32 atLeast(V_f32 x, float least) { return __builtin_ia32_maxps512_mask(bc_f32(least), x, x, (unsigned short)-1, 4); }
#else
FN V_f32 atMost(V_f32 x, float most) { return sel(gt(x, most), bc_f32(most), x); }
FN V_f32 atLeast(V_f32 x, float least) { return sel(lt(x, least), bc_f32(least), x); }
#endif
)";
// scale2: x times two to the power of n, a whole number.
constexpr std::string_view kExp = R"(#if defined(__AVX512F__) && !defined(__clang__)
FN V_f32 scale2(V_f32 x, V_f32 n) { return __builtin_ia32_scalefps512_mask(x, n, x, (unsigned short)-1, 4); }
#else
FN V_f32 scale2(V_f32 x, V_f32 to) {
    const V_i32 n = CONV(sel(eq(to, to), to, bc_f32(0)), V_i32), h = n >> 1;
    return x * (V_f32)((h + 127) << 23) * (V_f32)((n - h + 127) << 23);
}
#endif
FN V_f32 round_(V_f32 x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
FN V_f32 f_exp(V_f32 x) {
    x = atLeast(atMost(x, 89.f), -104.f);
    const V_f32 n = fma_(x, bc_f32(1.44269504f), 0x1.8p23f) - 0x1.8p23f;
    const V_f32 r = fma_(n, bc_f32(-1.42860677e-6f), fma_(n, bc_f32(-0.693145751953125f), x));
    V_f32 p = fma_(r, bc_f32(1.38145402e-3f), 8.36874511e-3f);  // off by 2**-28 at most, relative to the exponential
    p = fma_(p, r, 4.16683908e-2f); p = fma_(p, r, 1.66665204e-1f); p = fma_(p, r, 4.99999934e-1f);
    return scale2(fma_(p * r, r, r) + 1.f, n);
}
)";
// expm1Within: of numbers from -30 to 88.
constexpr std::string_view kExpm1 = R"(#if defined(__AVX512F__) && !defined(__clang__)
FN V_f32 power2(V_f32 n) { return scale2(bc_f32(1.f), n); }
#else
FN V_f32 power2(V_f32 n) { return (V_f32)((CONV(sel(eq(n, n), n, bc_f32(0)), V_i32) + 127) << 23); }
#endif
FN V_f32 expm1Within(V_f32 c) {
    const V_f32 n = round_(c * 1.44269504f);
    const V_f32 r = fma_(n, bc_f32(-1.42860677e-6f), fma_(n, bc_f32(-0.693145751953125f), c));
    V_f32 p = fma_(r, bc_f32(2.48015873e-5f), 1.98412698e-4f);
    p = fma_(p, r, 1.38888889e-3f);
    p = fma_(p, r, 8.33333333e-3f); p = fma_(p, r, 4.16666667e-2f); p = fma_(p, r, 1.66666667e-1f); p = fma_(p, r, 0.5f);
    p = fma_(p * r, r, r);
    const V_f32 s = power2(n);
    return fma_(s, p, s - 1.f);
}
FN V_f32 f_expm1(V_f32 x) {
    const V_f32 big = f_exp(x);
    return sel(gt(x, 88.f), big, sel(eq(x, 0.f), x, expm1Within(atLeast(atMost(x, 88.f), -30.f))));
}
)";
constexpr std::string_view kLog = R"(FN V_f32 f_log(V_f32 x) {
    const V_b tiny = lt(x, 0x1p-126f);
    const V_f32 y = sel(tiny, x * 0x1p23f, x);
    V_i32 e = ((V_i32)y - 0x3f3504f3) >> 23;
    const V_f32 m = (V_f32)((V_i32)y - (e << 23));
    e = e - (tiny & 23);
    const V_f32 f = m - 1.f, s = f / (f + 2.f), z = s * s, h = f * f * 0.5f, k = CONV(e, V_f32);
    V_f32 p = fma_(z, bc_f32(0.181818182f), 0.222222222f);
    p = fma_(p, z, 0.285714286f); p = fma_(p, z, 0.4f); p = fma_(p, z, 0.666666667f);
    V_f32 r = k * 0.693145751953125f - ((h - (s * (h + p * z) + k * 1.42860677e-6f)) - f);
    const float inf = __builtin_inff();
    r = sel(eq(x, 0.f), bc_f32(-inf), r);
    r = sel(lt(x, 0.f), bc_f32(__builtin_nanf("")), r);
    return sel(eq(x, inf) | ne(x, x), x, r);
}
)";
// x P(x x) / Q(x x), whose coefficients make the largest relative error over [0, 4] smallest (2.5e-8).
constexpr std::string_view kErf = R"(FN V_f32 f_erf(V_f32 x) {
    const V_f32 c = atLeast(atMost(x, 4.f), -4.f), z = c * c;
    V_f32 p = fma_(z, bc_f32(1.98679933e-06f), 2.84548761e-4f);
    p = fma_(p, z, 3.88283017e-3f); p = fma_(p, z, 5.3100160e-2f); p = fma_(p, z, 1.93533901e-1f); p = fma_(p, z, 1.12837914f);
    V_f32 q = fma_(z, bc_f32(3.74194437e-05f), 1.18543569e-3f);
    q = fma_(q, z, 1.52062332e-2f); q = fma_(q, z, 1.15345286e-1f); q = fma_(q, z, 5.04847513e-1f); q = fma_(q, z, 1.f);
    return atLeast(atMost(c * p / q, 1.f), -1.f);
}
)";

// The rows of a matrix as columns: squares of vectors, whose halves are zipped until each has one column.
constexpr std::string_view kTurn = R"(#if defined(__clang__) || __GNUC__ >= 12
template <int k, class V> FN V zipped(V x, V y) {
    constexpr int N = Of<V>::N;
    if constexpr (N == 16) return SHUFFLE(x, y, k, k + 16, k + 1, k + 17, k + 2, k + 18, k + 3, k + 19, k + 4, k + 20, k + 5, k + 21, k + 6, k + 22, k + 7, k + 23);
    else if constexpr (N == 8) return SHUFFLE(x, y, k, k + 8, k + 1, k + 9, k + 2, k + 10, k + 3, k + 11);
    else if constexpr (N == 4) return SHUFFLE(x, y, k, k + 4, k + 1, k + 5);
    else return SHUFFLE(x, y, k, k + 2);
}
template <int side, class V, int done = 1> FN void zipAll(V (&r)[side]) {
    if constexpr (done < side) {
        V q[side];
#pragma GCC unroll 8
        for (int i = 0; i < side / 2; ++i) {
            q[2 * i] = zipped<0>(r[i], r[i + side / 2]);
            q[2 * i + 1] = zipped<side / 2>(r[i], r[i + side / 2]);
        }
        zipAll<side, V, 2 * done>(q);
#pragma GCC unroll 16
        for (int i = 0; i < side; ++i) r[i] = q[i];
    }
}
// Rows of `from` lie fromStep apart, those of `to` toStep. What is written goes on along the memory first.
template <class T> FN void turn(const T* from, long fromStep, T* to, long toStep, long rows, long columns) {
    constexpr int most = REGISTER / sizeof(T), side = most < 16 ? most : 16;
    typedef Vec<T, side> V;
    const long wholeRows = rows / side * side, whole = columns / side * side;
    for (long j = 0; j < whole; j += side)
        for (long i = 0; i < wholeRows; i += side) {
            V r[side];
#pragma GCC unroll 16
            for (int k = 0; k < side; ++k) r[k] = loaded<V>(from + (i + k) * fromStep + j);
            zipAll<side>(r);
#pragma GCC unroll 16
            for (int k = 0; k < side; ++k) stored(to + (j + k) * toStep + i, r[k]);
        }
    for (long i = 0; i < rows; ++i)
        for (long j = i < wholeRows ? whole : 0; j < columns; ++j) to[j * toStep + i] = from[i * fromStep + j];
}
#else
template <class T> FN void turn(const T* from, long fromStep, T* to, long toStep, long rows, long columns) {
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < columns; ++j) to[j * toStep + i] = from[i * fromStep + j];
}
#endif
)";

// Functions of whole registers that come with the C library. The header says which library that is.
constexpr std::string_view kLibraryVectors =
    R"(#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 12 && __has_include(<features.h>)
#include <features.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#if defined(__AVX512F__)
#define LIBRARY_VECTORS e, 16
#elif defined(__AVX2__)
#define LIBRARY_VECTORS d, 8
#elif defined(__AVX__)
#define LIBRARY_VECTORS c, 8
#else
#define LIBRARY_VECTORS b, 4
#endif
#endif
#endif
#ifdef LIBRARY_VECTORS
#define NAMED(NAME, KIND, LANES_, OPERANDS) _ZGV##KIND##N##LANES_##OPERANDS##_##NAME##f
#define ONE_OF(NAME, KIND, L) \
    extern "C" Vec<float, L> NAMED(NAME, KIND, L, v)(Vec<float, L>); \
    FN V_f32 f_##NAME(V_f32 x) { return byRegisters(NAMED(NAME, KIND, L, v), x); }
#define TWO_OF(NAME, KIND, L) \
    extern "C" Vec<float, L> NAMED(NAME, KIND, L, vv)(Vec<float, L>, Vec<float, L>); \
    FN V_f32 f_##NAME(V_f32 x, V_f32 y) { return byRegisters(NAMED(NAME, KIND, L, vv), x, y); }
#define EXPANDED(MACRO, ...) MACRO(__VA_ARGS__)
#define LIBRARY_VECTORS1(NAME) EXPANDED(ONE_OF, NAME, LIBRARY_VECTORS)
#define LIBRARY_VECTORS2(NAME) EXPANDED(TWO_OF, NAME, LIBRARY_VECTORS)
template <class F, class V, class... More> FN V byRegisters(F* f, V x, More... more) {
    if constexpr (Of<V>::pair) return V{byRegisters(f, x.a, more.a...), byRegisters(f, x.b, more.b...)};
    else return f(x, more...);
}
#endif
)";

// By the processor's own instructions for whole vectors where it has them: set lane by lane results pass memory.
constexpr std::string_view kSqrt = R"(#if defined(__AVX__) && !defined(__clang__) && __GNUC__ >= 12
#if defined(__AVX512F__)
FN Vec<float, 16> f_sqrt(Vec<float, 16> x) { return __builtin_ia32_sqrtps512_mask(x, x, (unsigned short)-1, 4); }
FN Vec<double, 8> f_sqrt(Vec<double, 8> x) { return __builtin_ia32_sqrtpd512_mask(x, x, (unsigned char)-1, 4); }
#else
FN Vec<float, 8> f_sqrt(Vec<float, 8> x) { return __builtin_ia32_sqrtps256(x); }
FN Vec<double, 4> f_sqrt(Vec<double, 4> x) { return __builtin_ia32_sqrtpd256(x); }
#endif
template <class T, int N> FN Pair<T, N> f_sqrt(Pair<T, N> x) { return {f_sqrt(x.a), f_sqrt(x.b)}; }
#else
FN V_f32 f_sqrt(V_f32 x) { V_f32 r = {}; LANES put(r, k, __builtin_sqrtf(x[k])); return r; }
FN V_f64 f_sqrt(V_f64 x) { V_f64 r = {}; LANES put(r, k, __builtin_sqrt(x[k])); return r; }
#endif
)";
constexpr std::string_view kRound = R"(#if defined(__AVX__) && !defined(__clang__) && __GNUC__ >= 12
#if defined(__AVX512F__)
template <int how> FN Vec<float, 16> rounded(Vec<float, 16> x) { return __builtin_ia32_rndscaleps_mask(x, how, x, (unsigned short)-1, 4); }
template <int how> FN Vec<double, 8> rounded(Vec<double, 8> x) { return __builtin_ia32_rndscalepd_mask(x, how, x, (unsigned char)-1, 4); }
#else
template <int how> FN Vec<float, 8> rounded(Vec<float, 8> x) { return __builtin_ia32_roundps256(x, how); }
template <int how> FN Vec<double, 4> rounded(Vec<double, 4> x) { return __builtin_ia32_roundpd256(x, how); }
#endif
template <int how, class T, int N> FN Pair<T, N> rounded(Pair<T, N> x) { return {rounded<how>(x.a), rounded<how>(x.b)}; }
#define ROUNDING(NAME, HOW) \
    FN V_f32 f_##NAME(V_f32 x) { return rounded<HOW>(x); } \
    FN V_f64 f_##NAME(V_f64 x) { return rounded<HOW>(x); }
ROUNDING(round, 8) ROUNDING(floor, 9) ROUNDING(ceil, 10) ROUNDING(trunc, 11)
#else
FN V_f32 small_(V_f32 x, V_f32 r) {
    const V_b big = ge((V_i32)x & 0x7fffffff, 0x4b000000);
    return sel(big, x, (V_f32)((V_i32)r | ((V_i32)x & (int)0x80000000)));
}
FN V_f32 f_trunc(V_f32 x) {
    const V_b big = ge((V_i32)x & 0x7fffffff, 0x4b000000);
    return small_(x, CONV(CONV(sel(big, bc_f32(0), x), V_i32), V_f32));
}
FN V_f32 f_floor(V_f32 x) { const V_f32 t = f_trunc(x); return sel(gt(t, x), t - 1.f, t); }
FN V_f32 f_ceil(V_f32 x) { const V_f32 t = f_trunc(x); return small_(x, sel(lt(t, x), t + 1.f, t)); }
FN V_f32 f_round(V_f32 x) {
    const V_f32 a = (V_f32)((V_i32)x & 0x7fffffff);
    return small_(x, (a + 0x1p23f) - 0x1p23f);
}
#define ROUNDING(NAME, ONE) FN V_f64 f_##NAME(V_f64 x) { V_f64 r = {}; LANES put(r, k, ONE(x[k])); return r; }
ROUNDING(round, __builtin_rint) ROUNDING(floor, __builtin_floor) ROUNDING(ceil, __builtin_ceil) ROUNDING(trunc, __builtin_trunc)
#endif
)";

// Order matters: a snippet stands after what it needs.
const std::vector<Snippet>& snippets() {
    static const std::vector<Snippet> all = {
        {"mem_f32", "", "MEMORY(float, f32)\n"},
        {"mem_f64", "", "MEMORY(double, f64)\n"},
        {"mem_i64", "", "MEMORY(long, i64)\n"},
        {"mem_u64", "", "MEMORY(unsigned long, u64)\n"},
        {"mem_i32", "", "MEMORY(int, i32)\n"},
        {"mem_u32", "", "MEMORY(unsigned, u32)\n"},
        {"mem_i16", "", "MEMORY(short, i16)\n"},
        {"mem_u16", "", "MEMORY(unsigned short, u16)\n"},
        {"mem_i8", "", "MEMORY(signed char, i8)\n"},
        {"mem_u8", "", "MEMORY(unsigned char, u8)\n"},
        {"mem_b8", "mem_u8", R"(FN V_b toMask(V_u8 v) { return ne(v, 0); }
FN V_u8 fromMask(V_b v) { return CONV(v & 1, V_u8); }
FN V_b ld_b8(const unsigned char* p, int n) { return toMask(ld_u8(p, n)); }
FN V_b lds_b8(const unsigned char* p, long s, int n) { return toMask(lds_u8(p, s, n)); }
template <class I> FN V_b ldg_b8(const unsigned char* p, I i, int n) { return toMask(ldg_u8(p, i, n)); }
FN void st_b8(unsigned char* p, int n, V_b v) { st_u8(p, n, fromMask(v)); }
FN void sts_b8(unsigned char* p, long s, int n, V_b v) { sts_u8(p, s, n, fromMask(v)); }
template <class I> FN void stg_b8(unsigned char* p, I i, int n, V_b v) { stg_u8(p, i, n, fromMask(v)); }
)"},
        {"mem_bf16", "mem_u16", R"(FN V_f32 fromBf(V_u16 h) { return (V_f32)(CONV(h, V_u32) << 16); }
FN V_u16 toBf(V_f32 v) {
    const V_u32 u = (V_u32)v, r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return CONV(sel(eq(v, v), r, bc_u32(0x7fc0u)), V_u16);
}
FN float rd_bf16(const unsigned short* p) { const unsigned u = (unsigned)*p << 16; float f; __builtin_memcpy(&f, &u, 4); return f; }
FN void wr_bf16(unsigned short* p, float v) {
    unsigned u; __builtin_memcpy(&u, &v, 4);
    *p = v == v ? (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16) : (unsigned short)0x7fc0;
}
FN V_f32 round_bf16(V_f32 v) { return fromBf(toBf(v)); }
FN float round_bf16(float v) { unsigned short h; wr_bf16(&h, v); return rd_bf16(&h); }
FN V_f32 ld_bf16(const unsigned short* p, int n) { return fromBf(ld_u16(p, n)); }
FN V_f32 lds_bf16(const unsigned short* p, long s, int n) { return fromBf(lds_u16(p, s, n)); }
template <class I> FN V_f32 ldg_bf16(const unsigned short* p, I i, int n) { return fromBf(ldg_u16(p, i, n)); }
FN void st_bf16(unsigned short* p, int n, V_f32 v) { st_u16(p, n, toBf(v)); }
FN void sts_bf16(unsigned short* p, long s, int n, V_f32 v) { sts_u16(p, s, n, toBf(v)); }
template <class I> FN void stg_bf16(unsigned short* p, I i, int n, V_f32 v) { stg_u16(p, i, n, toBf(v)); }
)"},
        {"mem_f16", "mem_u16", R"(#if !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX512F__)
FN V_f32 fromHalf(V_u16 h) { return __builtin_ia32_vcvtph2ps512_mask((V_i16)h, V_f32{}, (unsigned short)-1, 4); }
FN V_u16 toHalf(V_f32 v) {
    const V_u16 r = (V_u16)__builtin_ia32_vcvtps2ph512_mask(v, 8, V_i16{}, (unsigned short)-1);
    return sel(eq(v, v), r, (r & 0x8000) | 0x7e00);
}
#else
FN V_f32 fromHalf(V_u16 h) {
    const V_u32 w = CONV(h, V_u32), m = w & 0x7fffu;
    const V_f32 f = (V_f32)(m << 13) * 0x1p112f;
    const V_u32 u = (V_u32)f | ((V_u32)gt(m, 0x7bffu) & 0x7f800000u) | ((w & 0x8000u) << 16);
    return (V_f32)u;
}
FN V_u16 toHalf(V_f32 v) {
    const V_u32 w = (V_u32)v, u = w & 0x7fffffffu;
    const V_u32 normal = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
    const V_u32 small = (V_u32)((V_f32)u + 0.5f) - 0x3f000000u;
    V_u32 r = sel(lt(u, 0x38800000u), small, normal);
    r = sel(ge(u, 0x47800000u), sel(gt(u, 0x7f800000u), bc_u32(0x7e00u), bc_u32(0x7c00u)), r);
    return CONV(r | ((w >> 16) & 0x8000u), V_u16);
}
#endif
FN float rd_f16(const unsigned short* p) { return fromHalf(bc_u16(*p))[0]; }
FN void wr_f16(unsigned short* p, float v) { *p = toHalf(bc_f32(v))[0]; }
FN V_f32 round_f16(V_f32 v) { return fromHalf(toHalf(v)); }
FN float round_f16(float v) { return fromHalf(toHalf(bc_f32(v)))[0]; }
FN V_f32 ld_f16(const unsigned short* p, int n) { return fromHalf(ld_u16(p, n)); }
FN V_f32 lds_f16(const unsigned short* p, long s, int n) { return fromHalf(lds_u16(p, s, n)); }
template <class I> FN V_f32 ldg_f16(const unsigned short* p, I i, int n) { return fromHalf(ldg_u16(p, i, n)); }
FN void st_f16(unsigned short* p, int n, V_f32 v) { st_u16(p, n, toHalf(v)); }
FN void sts_f16(unsigned short* p, long s, int n, V_f32 v) { sts_u16(p, s, n, toHalf(v)); }
template <class I> FN void stg_f16(unsigned short* p, I i, int n, V_f32 v) { stg_u16(p, i, n, toHalf(v)); }
)"},
        {"all_bits", "", R"(#if defined(__clang__) || __GNUC__ >= 12
template <class V> FN long allBits(V x) {
    constexpr int N = Of<V>::N;
    if constexpr (Of<V>::pair) return allBits(x.a | x.b);
    else if constexpr (N > 2) return allBits(half<N, 0>(x) | half<N, N / 2>(x));
    else return x[0] | x[1];
}
template <class V> FN bool anyOf(V mask) { return allBits(mask) != 0; }
#else
template <class V> FN bool anyOf(V) { return true; }
#endif
)"},
        {"checked_index", "all_bits", R"(FN long checkedIndex(long i, long n, int* fault) {
    if (i < 0 || i >= n) { *fault = 1; return 0; }
    return i;
}
#if defined(__clang__) || __GNUC__ >= 12
// i and n - 1 - i are both at least 0 only within range.
FN bool allWithin(V_i64 i, long n) { return allBits(i | ((n - 1) - i)) >= 0; }
#else
FN bool allWithin(V_i64, long) { return false; }
#endif
FN V_i64 checkedIndex(V_i64 i, long n, int lanes, int* fault) {
    if (lanes == W && allWithin(i, n)) return i;
    V_i64 r = {};
    for (int k = 0; k < lanes; ++k) put(r, k, checkedIndex(i[k], n, fault));
    return r;
}
)"},
        {"intdiv", "", R"(template <class T> FN T divTrunc(T a, T b, int* fault) {
    if (b == 0) { *fault = 2; return 0; }
    if (T(-1) < T(0) && b == T(-1)) return T(0) - a;
    return a / b;
}
template <class T> FN T divFloor(T a, T b, int* fault) {
    const T q = divTrunc(a, b, fault);
    return q - T(b != 0 && (a < 0) != (b < 0) && q * b != a);
}
template <class T> FN T modFloor(T a, T b, int* fault) { return b == 0 ? divTrunc(a, b, fault) : a - divFloor(a, b, fault) * b; }
template <class V> FN V divTrunc(V a, V b, int n, int* fault) { V r = {}; for (int k = 0; k < n; ++k) put(r, k, divTrunc(a[k], b[k], fault)); return r; }
template <class V> FN V divFloor(V a, V b, int n, int* fault) { V r = {}; for (int k = 0; k < n; ++k) put(r, k, divFloor(a[k], b[k], fault)); return r; }
template <class V> FN V modFloor(V a, V b, int n, int* fault) { V r = {}; for (int k = 0; k < n; ++k) put(r, k, modFloor(a[k], b[k], fault)); return r; }
)"},
        // GCC 12 makes one truncation of a float that becomes an integer and a float again, which keeps the sign of
        // zero.
        {"from_int", "", R"(template <class F, class T> FN F fromInt(T x) { __asm__("" : "+r"(x)); return (F)x; }
)"},
        // Floats that do not fit into an integer: as PyTorch does it on x86 (engine/tensor/elements.cpp).
        {"unsigned", "",
         R"(FN unsigned toU32(double x) { return x >= 0x1p31 ? (unsigned)(int)(x - 0x1p31) ^ 0x80000000u : (unsigned)(int)x; }
FN unsigned long toU64(double x) { return x >= 0x1p63 ? (unsigned long)(long)(x - 0x1p63) ^ 0x8000000000000000ul : (unsigned long)(long)x; }
template <class V> FN V_u32 toU32V(V x) { const V_b m = ge(x, 0x1p31f); return (V_u32)CONV(sel(m, x - 0x1p31f, x), V_i32) ^ ((V_u32)m & 0x80000000u); }
template <class V> FN V_u64 toU64V(V x) { const V_b m = ge(x, 0x1p63f); return (V_u64)CONV(sel(m, x - 0x1p63f, x), V_i64) ^ ((V_u64)CONV(m, V_i64) & 0x8000000000000000ul); }
)"},
        {"shift", "",
         R"(template <class T> FN T shl(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(0) : T((unsigned long)a << b); }
template <class T> FN T shr(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(a < 0 ? -1 : 0) : T(a >> b); }
template <class V> FN V shlv(V a, V b) { V r = {}; LANES { auto x = a[k]; decltype(x) y = b[k]; put(r, k, shl(x, y)); } return r; }
template <class V> FN V shrv(V a, V b) { V r = {}; LANES { auto x = a[k]; decltype(x) y = b[k]; put(r, k, shr(x, y)); } return r; }
)"},
        {"minmax", "", R"(template <class T> FN T minS(T a, T b) { return a != a ? a : b < a || b != b ? b : a; }
template <class T> FN T maxS(T a, T b) { return a != a ? a : b > a || b != b ? b : a; }
#ifdef __clang__  // it takes a <= 0 for a < 0 where b is a constant zero, and loses the sign of a
template <class V> FN V firstIfSame(V a, V b, V m) { return sel(eq(a, b), a, m); }
#else
template <class V> FN V firstIfSame(V, V, V m) { return m; }
#endif
template <class V> FN V minV(V a, V b) {
    if constexpr (isReal<typename Of<V>::T>) return firstIfSame(a, b, sel((lt(b, a) | ne(b, b)) & eq(a, a), b, a));
    else if constexpr (Of<V>::pair) return V{minV(a.a, b.a), minV(a.b, b.b)};
    else return a < b ? a : b;
}
template <class V> FN V maxV(V a, V b) {
    if constexpr (isReal<typename Of<V>::T>) return firstIfSame(a, b, sel((gt(b, a) | ne(b, b)) & eq(a, a), b, a));
    else if constexpr (Of<V>::pair) return V{maxV(a.a, b.a), maxV(a.b, b.b)};
    else return a > b ? a : b;
}
#if W == 16 && defined(__AVX512F__) && !defined(__clang__) && __GNUC__ >= 12
// The instructions give a wherever they cannot tell: of equal ones, and where one is no number. In a reduction a is what
// came before, so nothing but the two last steps waits for it.
FN V_f32 orNan(V_f32 b, V_f32 m) {
    return __builtin_ia32_movaps512_mask(b, m, __builtin_ia32_cmpps512_mask(b, b, 3, (unsigned short)-1, 4));
}
FN V_f32 minV(V_f32 a, V_f32 b) { return orNan(b, __builtin_ia32_minps512_mask(b, a, a, (unsigned short)-1, 4)); }
FN V_f32 maxV(V_f32 a, V_f32 b) { return orNan(b, __builtin_ia32_maxps512_mask(b, a, a, (unsigned short)-1, 4)); }
#endif
)"},
        {"turn", "", kTurn},
        {"bounds", "", kBounds},
        {"exp", "bounds", kExp},
        {"expm1", "exp", kExpm1},
        {"log", "", kLog},
        {"log1p", "log", R"(FN V_f32 f_log1p(V_f32 x) {
    const V_f32 u = x + 1.f, c = (x - (u - 1.f)) / u;
    return sel(eq(u, 1.f), x, f_log(u) + sel(eq(c - c, 0.f), c, bc_f32(0)));
}
)"},
        {"tanh", "expm1", R"(FN V_f32 f_tanh(V_f32 x) {
    const V_f32 a = (V_f32)((V_i32)x & 0x7fffffff), t = expm1Within(atMost(a, 10.f) * 2.f), r = t / (t + 2.f);
    return (V_f32)((V_i32)r | ((V_i32)x & (int)0x80000000));
}
)"},
        {"erf", "bounds", kErf},
        {"sigmoid", "exp", "FN V_f32 f_sigmoid(V_f32 x) { return bc_f32(1.f) / (f_exp(-x) + 1.f); }\n"},
        {"sqrt", "", kSqrt},
        {"rsqrt", "sqrt",
         "FN V_f32 f_rsqrt(V_f32 x) { return bc_f32(1.f) / f_sqrt(x); }\nFN V_f64 f_rsqrt(V_f64 x) { return bc_f64(1.) / f_sqrt(x); }\n"},
        {"library vectors", "", kLibraryVectors},
        {"round", "", kRound},
        {"copysign", "", R"(template <class V> FN V signedAs(V x, V y) {
    if constexpr (Of<V>::pair) return V{signedAs(x.a, y.a), signedAs(x.b, y.b)};
    else { const Mask<V> sign = (Mask<V>)spread<V>(-0.); return (V)(((Mask<V>)x & ~sign) | ((Mask<V>)y & sign)); }
}
FN V_f32 f_copysign(V_f32 x, V_f32 y) { return signedAs(x, y); }
FN V_f64 f_copysign(V_f64 x, V_f64 y) { return signedAs(x, y); }
)"},
        {"nextafter", "", cppNextafter()},
        {"fmod", "round all_bits copysign", cppFmod()},
        {"floormod", "round fmod", R"(FN float floorDivF(float a, float b) { return __builtin_floorf(a / b); }
FN double floorDivF(double a, double b) { return __builtin_floor(a / b); }
FN float floorModF(float a, float b) { const float m = __builtin_fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
FN double floorModF(double a, double b) { const double m = __builtin_fmod(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
template <class V> FN V floorDivV(V a, V b) { return f_floor(a / b); }
FN V_f32 floorModV(V_f32 a, V_f32 b) {
    const V_f32 m = f_fmod(a, b);
    return sel(ne(m, 0.f) & (lt(b, 0.f) ^ lt(m, 0.f)), m + b, m);
}
FN V_f64 floorModV(V_f64 a, V_f64 b) { V_f64 r = {}; LANES put(r, k, floorModF(a[k], b[k])); return r; }
)"},
        {"wide_log", "", cppWideLog()},
        {"lgamma", "wide_log all_bits", cppLgamma()},
        {"digamma", "", R"(static double digamma_(double x) {
    if (x == 0) return __builtin_copysign(__builtin_inf(), -x);
    double r = 0;
    if (x < 0) {
        if (x == __builtin_floor(x)) return __builtin_nan("");
        r = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * (x - __builtin_trunc(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) r -= 1 / x;
    const double y = 1 / (x * x);
    return r + __builtin_log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * (691. / 32760 - y / 12))))));
}
)"},
        {"erfinv", "", R"(static double erfinv_(double y) {
    if (!(y > -1 && y < 1)) return y == 1 ? __builtin_inf() : y == -1 ? -__builtin_inf() : __builtin_nan("");
    const double w = __builtin_log((1 - y) * (1 + y)), t = 4.330746750799873 + w / 2;
    double x = __builtin_copysign(__builtin_sqrt(__builtin_sqrt(t * t - w / 0.147) - t), y);
    for (int k = 0; k < 4; ++k) {
        const double e = __builtin_erf(x) - y;
        const double s = e / (1.1283791670955126 * __builtin_exp(-x * x));
        x -= s / (1 + x * s);
    }
    return x;
}
)"},
        {"erfinv vectors", "erfinv wide_log sqrt", cppErfinv()},
    };
    return all;
}

void addWithNeeds(std::set<std::string>& wanted, const std::string& name) {
    if (!wanted.insert(name).second) return;
    for (const Snippet& snippet : snippets()) {
        if (snippet.name != name) continue;
        std::string_view rest = snippet.needs;
        while (!rest.empty()) {
            const std::string_view one = rest.substr(0, rest.find(' '));
            rest.remove_prefix(std::min(rest.size(), one.size() + 1));
            addWithNeeds(wanted, std::string(one));
        }
    }
}

}  // namespace

std::string cppPrelude(int lanes, const std::set<std::string>& helpers) {
    std::set<std::string> wanted, functions;
    for (const std::string& helper : helpers) {
        if (!helper.starts_with("f_")) {
            addWithNeeds(wanted, helper);
            continue;
        }
        const std::string function = helper.substr(2);
        CT_CHECK(hasCppFunction(function), "the printer asks only for functions that exist");
        functions.insert(function);
        if (const auto needed = cppFunctionNeeds(function); !needed.empty()) addWithNeeds(wanted, std::string(needed));
    }
    std::string text = "#define W " + std::to_string(lanes) + "\n" + std::string(cppLanes());
    for (const Snippet& snippet : snippets())
        if (wanted.contains(std::string(snippet.name))) text += snippet.text;
    return text + cppFunctions(functions);
}

}  // namespace cutaway
