// What every file of generated code begins with: vectors, whatever the processor has, and their memory.
#include "engine/codegen/cpp_prelude.h"

namespace cutaway {
namespace {

// First in every file: what is the same for any number of lanes, which is W where macros are used.
constexpr std::string_view kVectors = R"(#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes what a comparison has found for something else in the meantime (noce_convert_multiple_sets).
#pragma GCC optimize("no-if-conversion")
#endif
#define FN static inline __attribute__((always_inline))
#define INSIDE inline __attribute__((always_inline))
#define LANES for (int k = 0; k < W; ++k)
#define SHUFFLE __builtin_shufflevector
#if defined(__clang__) || __GNUC__ < 12
#define REGISTER 128
#elif defined(__AVX512F__)
#define REGISTER 64
#elif defined(__AVX__)
#define REGISTER 32
#else
#define REGISTER 16
#endif
// N lanes: the compiler's own vector where a register holds it, else a pair of vectors of half the lanes. GCC splits what
// is wider itself, but keeps it in memory from one step to the next, and compares and converts its lanes one by one.
template <class T, int N> struct Pair;
template <class T, int N, bool fits = (N * sizeof(T) <= REGISTER)> struct Lanes { typedef Pair<T, N> V; };
template <class T, int N> struct Lanes<T, N, true> { typedef T V __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using Vec = typename Lanes<T, N>::V;
template <class T, int N> struct Pair {
    typedef Vec<T, N / 2> Half;
    Half a, b;
    INSIDE T operator[](int k) const { return !__builtin_constant_p(k) ? ((const T*)this)[k] : k < N / 2 ? a[k] : b[k - N / 2]; }
    template <class U> INSIDE explicit operator Pair<U, N>() const { return {(Vec<U, N / 2>)a, (Vec<U, N / 2>)b}; }
};
#define OPERATOR(OP) \
    template <class T, int N> FN Pair<T, N> operator OP(Pair<T, N> x, Pair<T, N> y) { return {x.a OP y.a, x.b OP y.b}; } \
    template <class T, int N, class S> FN Pair<T, N> operator OP(Pair<T, N> x, S y) { return {x.a OP T(y), x.b OP T(y)}; } \
    template <class T, int N, class S> FN Pair<T, N> operator OP(S x, Pair<T, N> y) { return {T(x) OP y.a, T(x) OP y.b}; }
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/) OPERATOR(%) OPERATOR(&) OPERATOR(|) OPERATOR(^) OPERATOR(<<) OPERATOR(>>)
template <class T, int N> FN Pair<T, N> operator-(Pair<T, N> x) { return {-x.a, -x.b}; }
template <class T, int N> FN Pair<T, N> operator~(Pair<T, N> x) { return {~x.a, ~x.b}; }
template <class V> struct Of { typedef __typeof__(V{}[0]) T; static constexpr int N = sizeof(V) / sizeof(T); static constexpr bool pair = false; };
template <class U, int M> struct Of<Pair<U, M>> { typedef U T; static constexpr int N = M; static constexpr bool pair = true; };
template <int... k> struct Numbers {};
#if defined(__clang__)
template <class T, T... k> struct NumbersOf { typedef Numbers<k...> Own; };
template <int N> using UpTo = typename __make_integer_seq<NumbersOf, int, N>::Own;
#else
template <int N> using UpTo = Numbers<__integer_pack(N)...>;
#endif
template <class V, class H, int... k> FN V shuffled(H x, H y, Numbers<k...>) { return SHUFFLE(x, y, k...); }
template <int from, class V, int... k> FN auto shuffledFrom(V x, V y, Numbers<k...>) { return SHUFFLE(x, y, (from + k)...); }
template <int N, class V, class H> FN V joined(H x, H y) { return shuffled<V>(x, y, UpTo<N>()); }
template <int N, int k, class V> FN auto half(V x) { return shuffledFrom<k>(x, x, UpTo<N / 2>()); }
template <class R, class V> struct Converted { static constexpr bool direct = false; FN R from(V x) { return __builtin_convertvector(x, R); } };
#if !defined(__clang__) && __GNUC__ >= 12 && defined(__AVX2__)
// What GCC makes halves of.
#define CONVERTED(T, U, N, CALL) template <> struct Converted<Vec<T, N>, Vec<U, N>> { static constexpr bool direct = true; FN Vec<T, N> from(Vec<U, N> x) { typedef Vec<T, N> R; return CALL; } };
#if defined(__AVX512F__)
// Of 4 bytes from less, and back.
#define WIDENED(T, U, NARROW, CALL) CONVERTED(T, U, 16, (R)CALL((Vec<NARROW, 16>)x, Vec<int, 16>{}, (unsigned short)-1))
#define NARROWED(T, U, NARROW, CALL) CONVERTED(T, U, 16, (R)CALL((Vec<int, 16>)x, Vec<NARROW, 16>{}, (unsigned short)-1))
#define BOTH(WIDE) \
    WIDENED(WIDE, signed char, char, __builtin_ia32_pmovsxbd512_mask) WIDENED(WIDE, unsigned char, char, __builtin_ia32_pmovzxbd512_mask) \
    WIDENED(WIDE, short, short, __builtin_ia32_pmovsxwd512_mask) WIDENED(WIDE, unsigned short, short, __builtin_ia32_pmovzxwd512_mask) \
    NARROWED(signed char, WIDE, char, __builtin_ia32_pmovdb512_mask) NARROWED(unsigned char, WIDE, char, __builtin_ia32_pmovdb512_mask) \
    NARROWED(short, WIDE, short, __builtin_ia32_pmovdw512_mask) NARROWED(unsigned short, WIDE, short, __builtin_ia32_pmovdw512_mask)
BOTH(int) BOTH(unsigned)
CONVERTED(double, float, 8, __builtin_ia32_cvtps2pd512_mask(x, R{}, (unsigned char)-1, 4))
CONVERTED(float, double, 8, __builtin_ia32_cvtpd2ps512_mask(x, R{}, (unsigned char)-1, 4))
CONVERTED(double, int, 8, __builtin_ia32_cvtdq2pd512_mask(x, R{}, (unsigned char)-1))
CONVERTED(int, double, 8, __builtin_ia32_cvttpd2dq512_mask(x, R{}, (unsigned char)-1, 4))
CONVERTED(long, int, 8, (R)__builtin_ia32_pmovsxdq512_mask(x, Vec<long long, 8>{}, (unsigned char)-1))
CONVERTED(int, long, 8, __builtin_ia32_pmovqd512_mask((Vec<long long, 8>)x, R{}, (unsigned char)-1))
#else
CONVERTED(double, float, 4, __builtin_ia32_cvtps2pd256(x))
CONVERTED(float, double, 4, __builtin_ia32_cvtpd2ps256(x))
CONVERTED(double, int, 4, __builtin_ia32_cvtdq2pd256(x))
CONVERTED(int, double, 4, __builtin_ia32_cvttpd2dq256(x))
CONVERTED(long, int, 4, (R)__builtin_ia32_pmovsxdq256(x))
CONVERTED(int, long, 4, SHUFFLE((Vec<int, 8>)x, (Vec<int, 8>)x, 0, 2, 4, 6))
#endif
#endif
template <class T> constexpr bool isReal = T(0.5) != T(0);
// GCC converts to lanes of twice the width, or of half of it; to others one by one, so it is shown the way.
template <class U, class V> FN auto conv(V x) {
    typedef typename Of<V>::T T;
    constexpr int N = Of<V>::N, from = sizeof(T), to = sizeof(U);
    typedef Vec<U, N> R;
    constexpr bool real = isReal<T>, toReal = isReal<U>;
    if constexpr (Converted<R, V>::direct) return Converted<R, V>::from(x);
    else if constexpr (from < 4 && (to > 4 || toReal)) return conv<U>(conv<int>(x));
    else if constexpr (from == 1 && to > 2) return conv<U>(conv<short>(x));
    else if constexpr (to < 4 && (from > 4 || real)) return conv<U>(conv<int>(x));
    else if constexpr (to == 1 && from == 4) return conv<U>(conv<short>(x));
    else if constexpr (Of<V>::pair && Of<R>::pair) return R{conv<U>(x.a), conv<U>(x.b)};
    else if constexpr (Of<V>::pair) return joined<N, R>(conv<U>(x.a), conv<U>(x.b));
    else if constexpr (Of<R>::pair) return R{conv<U>(half<N, 0>(x)), conv<U>(half<N, N / 2>(x))};
    else return Converted<R, V>::from(x);
}
#define CONV(x, V) conv<typename Of<V>::T>(x)
template <int bytes> struct Signed { typedef int T; };
template <> struct Signed<1> { typedef signed char T; };
template <> struct Signed<2> { typedef short T; };
template <> struct Signed<8> { typedef long T; };
template <class V> using Mask = Vec<typename Signed<sizeof(typename Of<V>::T)>::T, Of<V>::N>;
template <class V, class S> FN V spread(S x) {
    if constexpr (Of<V>::pair) { const auto h = spread<typename V::Half>(x); return V{h, h}; }
    else return typename Of<V>::T(x) - V{};
}
template <class V> FN V chosen(Mask<V> m, V x, V y) {
    if constexpr (Of<V>::pair) return V{chosen<typename V::Half>(m.a, x.a, y.a), chosen<typename V::Half>(m.b, x.b, y.b)};
    else return (V)(((Mask<V>)x & m) | ((Mask<V>)y & ~m));
}
// Lanes from the k-th of x and y one after the other, as many as x has, k less than that.
template <int k, class V> FN V lanesFrom(V x, V y) {
    constexpr int N = Of<V>::N;
    if constexpr (k == 0) return x;
    else if constexpr (Of<V>::pair && k >= N / 2) return V{lanesFrom<k - N / 2>(x.b, y.a), lanesFrom<k - N / 2>(y.a, y.b)};
    else if constexpr (Of<V>::pair) return V{lanesFrom<k>(x.a, x.b), lanesFrom<k>(x.b, y.a)};
#if !defined(__clang__) && __GNUC__ < 12
    else { V r; for (int i = 0; i < N; ++i) r[i] = i + k < N ? x[i + k] : y[i + k - N]; return r; }
#else
    else return shuffledFrom<k>(x, y, UpTo<N>());
#endif
}
// Built in registers: lanes set one by one go through memory, and the vector's load waits for them.
template <class V, int... k, class F> FN V made(Numbers<k...>, int from, const F& f) { return V{f(from + k)...}; }
template <class V, int from = 0, class F> FN V made(const F& f) {
    constexpr int N = Of<V>::N;
    if constexpr (Of<V>::pair) return V{made<typename V::Half, from>(f), made<typename V::Half, from + N / 2>(f)};
    else return made<V>(UpTo<N>(), from, f);
}
template <class V> FN V counted() { return made<V>([](int k) { return typename Of<V>::T(k); }); }
#define COMPARISON(NAME, OP) \
    template <class V> FN Mask<V> NAME##Lanes(V x, V y) { \
        if constexpr (Of<V>::pair) return {NAME##Lanes(x.a, y.a), NAME##Lanes(x.b, y.b)}; \
        else return x OP y; \
    }
COMPARISON(eq, ==) COMPARISON(ne, !=) COMPARISON(lt, <) COMPARISON(le, <=) COMPARISON(gt, >) COMPARISON(ge, >=)
#define COMPARED(NAME) \
    template <class V> FN V_b NAME(V x, V y) { return CONV(NAME##Lanes(x, y), V_b); } \
    template <class V, class S> FN V_b NAME(V x, S y) { return NAME(x, spread<V>(y)); }
template <int k, class V> FN V rotated(V v) { return lanesFrom<k>(v, v); }
// A value: of two pairs GCC chooses the address.
template <class V> FN V itself(V v) { return v; }
template <class V, class T> FN void put(V& v, int k, T x) {
    if constexpr (Of<V>::pair) ((typename Of<V>::T*)&v)[k] = x;
    else v[k] = x;
}
template <class V, class T> FN V loaded(const T* p) {
    if constexpr (Of<V>::pair) return V{loaded<typename V::Half>(p), loaded<typename V::Half>(p + Of<V>::N / 2)};
    else { V v; __builtin_memcpy(&v, p, sizeof v); return v; }
}
template <class V, class T> FN void stored(T* p, V v) {
    if constexpr (Of<V>::pair) { stored(p, v.a); stored(p + Of<V>::N / 2, v.b); }
    else __builtin_memcpy(p, &v, sizeof v);
}
// p[0], p[2] and so on; nothing behind the last of them is read.
#if defined(__clang__) || __GNUC__ >= 12
template <class V, int... k> FN V second(V x, V y, Numbers<k...>) { return SHUFFLE(x, y, (2 * k + (2 * k >= Of<V>::N))...); }
template <class V, class T> FN V everySecond(const T* p) {
    constexpr int N = Of<V>::N;
    if constexpr (Of<V>::pair) return V{everySecond<typename V::Half>(p), everySecond<typename V::Half>(p + N)};
    else return second(loaded<V>(p), loaded<V>(p + N - 1), UpTo<N>());
}
#else
template <class V, class T> FN V everySecond(const T* p) { return made<V>([&](int k) { return p[2 * k]; }); }
#endif
#define MEMORY(T, N) \
    FN V_##N ld_##N(const T* p, int n) { if (n == W) return loaded<V_##N>(p); V_##N r = {}; first(r, p, n); return r; } \
    FN V_##N lds_##N(const T* p, long s, int n) { if (n == W) return __builtin_constant_p(s) && s == 2 ? everySecond<V_##N>(p) : made<V_##N>([&](int k) { return p[k * s]; }); V_##N r = {}; for (int k = 0; k < n; ++k) put(r, k, p[k * s]); return r; } \
    template <class I> FN V_##N ldg_##N(const T* p, I i, int n) { if (n == W) return made<V_##N>([&](int k) { return p[i[k]]; }); V_##N r = {}; for (int k = 0; k < n; ++k) put(r, k, p[i[k]]); return r; } \
    FN void st_##N(T* p, int n, V_##N v) { if (n == W) stored(p, v); else putFirst(p, n, v); } \
    FN void sts_##N(T* p, long s, int n, V_##N v) { if (n == W) LANES p[k * s] = v[k]; else for (int k = 0; k < n; ++k) p[k * s] = v[k]; } \
    template <class I> FN void stg_##N(T* p, I i, int n, V_##N v) { for (int k = 0; k < n; ++k) p[i[k]] = v[k]; } \
    FN void ads_##N(T* p, long s, int n, V_##N v) { for (int k = 0; k < n; ++k) p[k * s] += v[k]; } \
    template <class I> FN void adg_##N(T* p, I i, int n, V_##N v) { for (int k = 0; k < n; ++k) p[i[k]] += v[k]; }
)";

// For each number of lanes, within a namespace. V_b is a mask: 0 or -1 per lane, of the width that fills a register.
constexpr std::string_view kLanes = R"(typedef Vec<float, W> V_f32;
typedef Vec<double, W> V_f64;
typedef Vec<long, W> V_i64;
typedef Vec<unsigned long, W> V_u64;
typedef Vec<int, W> V_i32;
typedef Vec<unsigned, W> V_u32;
typedef Vec<short, W> V_i16;
typedef Vec<unsigned short, W> V_u16;
typedef Vec<signed char, W> V_i8;
typedef Vec<unsigned char, W> V_u8;
typedef Vec<Signed<64 / W>::T, W> V_b;
COMPARED(eq) COMPARED(ne) COMPARED(lt) COMPARED(le) COMPARED(gt) COMPARED(ge)
template <class V> FN V sel(V_b m, V x, V y) { return chosen<V>(CONV(m, Mask<V>), x, y); }
FN V_b bc_b(bool x) { return spread<V_b>(-int(x)); }
// Of whole vectors nothing is left to choose, which GCC sees only while n is a number.
struct Below {
    int n;
    INSIDE operator V_b() const { return lt(counted<V_b>(), n); }
};
FN Below lanesBelow(int n) { return {n}; }
template <class V> FN V sel(Below m, V x, V y) { return __builtin_constant_p(m.n) && m.n == W ? itself(x) : sel((V_b)m, x, y); }
FN V_i64 iota_i64(long from) { return counted<V_i64>() + from; }
FN V_i32 iota_i32(long from) { return counted<V_i32>() + (int)from; }
FN V_f32 bc_f32(float x) { return spread<V_f32>(x); }
FN V_f64 bc_f64(double x) { return spread<V_f64>(x); }
FN V_i64 bc_i64(long x) { return spread<V_i64>(x); }
FN V_u64 bc_u64(unsigned long x) { return spread<V_u64>(x); }
FN V_i32 bc_i32(int x) { return spread<V_i32>(x); }
FN V_u32 bc_u32(unsigned x) { return spread<V_u32>(x); }
FN V_i16 bc_i16(short x) { return spread<V_i16>(x); }
FN V_u16 bc_u16(unsigned short x) { return spread<V_u16>(x); }
FN V_i8 bc_i8(signed char x) { return spread<V_i8>(x); }
FN V_u8 bc_u8(unsigned char x) { return spread<V_u8>(x); }
// The first n lanes, fewer than W. One by one they would take as long as the rest of a short row.
template <class V, class T> FN void first(V& r, const T* p, int n) {
    if constexpr (W > 16) __builtin_memcpy(&r, p, n * sizeof(T));
    else for (int k = 0; k < n; ++k) put(r, k, p[k]);
}
template <class V, class T> FN void putFirst(T* p, int n, const V& v) {
    if constexpr (W > 16) __builtin_memcpy(p, &v, n * sizeof(T));
    else for (int k = 0; k < n; ++k) p[k] = v[k];
}
#if W == 16
// a * b + c with one rounding where the processor has it, within functions only: what a graph says rounds twice.
#if defined(__clang__)
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) {
#pragma clang fp contract(fast)
    return a * b + c;
}
#elif defined(__AVX512F__)
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4); }
#elif defined(__FMA__) && __GNUC__ >= 12
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) { return {__builtin_ia32_vfmaddps256(a.a, b.a, c.a), __builtin_ia32_vfmaddps256(a.b, b.b, c.b)}; }
#else
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) { return a * b + c; }
#endif
FN V_f32 fma_(V_f32 a, V_f32 b, float c) { return fma_(a, b, bc_f32(c)); }
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 12)
#define LOWER(n) ((1u << (n)) - 1u)
#define MASKED(N, T) \
    FN void first(V_##N& r, const T* p, int n) { r = (V_##N)__builtin_ia32_loadups512_mask((const float*)p, V_f32{}, (unsigned short)LOWER(n)); } \
    FN void putFirst(T* p, int n, const V_##N& v) { __builtin_ia32_storeups512_mask((float*)p, (V_f32)v, (unsigned short)LOWER(n)); }
MASKED(f32, float) MASKED(i32, int) MASKED(u32, unsigned)
typedef double D8 __attribute__((vector_size(64)));
#define MASKED2(N, T) \
    FN void first(V_##N& r, const T* p, int n) { \
        const D8 x = __builtin_ia32_loadupd512_mask((const double*)p, D8{}, (unsigned char)LOWER(n < 8 ? n : 8)); \
        const D8 y = __builtin_ia32_loadupd512_mask((const double*)p + 8, D8{}, (unsigned char)(LOWER(n) >> 8)); \
        r = (V_##N)whole(x, y); \
    } \
    FN void putFirst(T* p, int n, const V_##N& v) { \
        const V_f64 d = (V_f64)v; \
        __builtin_ia32_storeupd512_mask((double*)p, lower(d), (unsigned char)LOWER(n < 8 ? n : 8)); \
        __builtin_ia32_storeupd512_mask((double*)p + 8, upper(d), (unsigned char)(LOWER(n) >> 8)); \
    }
#if defined(__clang__)
FN V_f64 whole(D8 x, D8 y) { return joined<16, V_f64>(x, y); }
FN D8 lower(V_f64 d) { return half<16, 0>(d); }
FN D8 upper(V_f64 d) { return half<16, 8>(d); }
#else
FN V_f64 whole(D8 x, D8 y) { return {x, y}; }
FN D8 lower(V_f64 d) { return d.a; }
FN D8 upper(V_f64 d) { return d.b; }
#endif
MASKED2(f64, double) MASKED2(i64, long) MASKED2(u64, unsigned long)
#elif defined(__AVX__) && !defined(__clang__) && __GNUC__ >= 12
typedef float F8 __attribute__((vector_size(32)));
typedef int I8 __attribute__((vector_size(32)));
#define MASKED(N, T) \
    FN void first(V_##N& r, const T* p, int n) { \
        const V_b m = lanesBelow(n); \
        r = (V_##N)V_f32{__builtin_ia32_maskloadps256((const F8*)p, m.a), __builtin_ia32_maskloadps256((const F8*)p + 1, m.b)}; \
    } \
    FN void putFirst(T* p, int n, const V_##N& v) { \
        const V_b m = lanesBelow(n); \
        const V_f32 f = (V_f32)v; \
        __builtin_ia32_maskstoreps256((F8*)p, m.a, f.a); \
        __builtin_ia32_maskstoreps256((F8*)p + 1, m.b, f.b); \
    }
MASKED(f32, float) MASKED(i32, int) MASKED(u32, unsigned)
#endif
#endif
)";

}  // namespace

std::string_view cppVectors() { return kVectors; }
std::string_view cppLanes() { return kLanes; }

}  // namespace cutaway
