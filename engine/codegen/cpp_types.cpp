// What every file of generated code begins with: vectors of 16 lanes, whatever the processor has, and their memory.
#include "engine/codegen/cpp_prelude.h"

namespace cutaway {
namespace {

// Types come first in every file. V_b is a mask: 0 or -1 per lane.
constexpr std::string_view kTypes = R"(#define FN static inline __attribute__((always_inline))
typedef float V_f32 __attribute__((vector_size(64)));
typedef double V_f64 __attribute__((vector_size(128)));
typedef long V_i64 __attribute__((vector_size(128)));
typedef unsigned long V_u64 __attribute__((vector_size(128)));
typedef int V_i32 __attribute__((vector_size(64)));
typedef unsigned V_u32 __attribute__((vector_size(64)));
typedef short V_i16 __attribute__((vector_size(32)));
typedef unsigned short V_u16 __attribute__((vector_size(32)));
typedef signed char V_i8 __attribute__((vector_size(16)));
typedef unsigned char V_u8 __attribute__((vector_size(16)));
typedef V_i32 V_b;
#define CONV(x, T) __builtin_convertvector(x, T)
#define LANES for (int k = 0; k < 16; ++k)
FN V_b mask(V_i32 m) { return m; }
FN V_b mask(V_i64 m) { return CONV(m, V_b); }
FN V_b mask(V_i16 m) { return CONV(m, V_b); }
FN V_b mask(V_i8 m) { return CONV(m, V_b); }
FN V_b lanesBelow(int n) {
    const V_i32 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return lane < n;
}
FN V_i64 iota(long from) {
    const V_i64 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return lane + from;
}
FN V_b bc_b(bool x) { return V_b{} - int(x); }
#define TYPE(S, T, N, M) \
    FN V_##N bc_##N(T x) { return V_##N{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; } \
    FN V_##N sel(V_b m, V_##N a, V_##N b) { const M c = CONV(m, M); return (V_##N)(((M)a & c) | ((M)b & ~c)); }
TYPE(1, float, f32, V_i32) TYPE(1, double, f64, V_i64) TYPE(1, long, i64, V_i64) TYPE(1, unsigned long, u64, V_i64)
TYPE(1, int, i32, V_i32) TYPE(1, unsigned, u32, V_i32) TYPE(1, short, i16, V_i16) TYPE(1, unsigned short, u16, V_i16)
TYPE(1, signed char, i8, V_i8) TYPE(1, unsigned char, u8, V_i8)
// a * b + c with one rounding where the processor has it, within functions only: what a graph says rounds twice.
#if defined(__clang__)
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) {
#pragma clang fp contract(fast)
    return a * b + c;
}
#elif defined(__AVX512F__)
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4); }
#elif defined(__FMA__) && __GNUC__ >= 12
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) {
#define LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define HIGH(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
    return __builtin_shufflevector(__builtin_ia32_vfmaddps256(LOW(a), LOW(b), LOW(c)), __builtin_ia32_vfmaddps256(HIGH(a), HIGH(b), HIGH(c)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#else
FN V_f32 fma_(V_f32 a, V_f32 b, V_f32 c) { return a * b + c; }
#endif
FN V_f32 fma_(V_f32 a, V_f32 b, float c) { return fma_(a, b, bc_f32(c)); }
// S_f64: a vector variable that loops change. GCC keeps one that is wider than a register in memory from one step to the
// next, which is as slow as memory; as parts it stays in registers.
#define SAME(N) typedef V_##N S_##N; FN V_##N whole(V_##N v) { return v; }
#define SHUFFLE __builtin_shufflevector
#define HALVES(N, T) \
    typedef T H_##N __attribute__((vector_size(8 * sizeof(T)))); \
    struct S_##N { \
        H_##N a, b; \
        S_##N(V_##N v) : a(SHUFFLE(v, v, 0, 1, 2, 3, 4, 5, 6, 7)), b(SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15)) {} \
    }; \
    FN V_##N whole(const S_##N& s) { return SHUFFLE(s.a, s.b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
#define QUARTERS(N, T) \
    typedef T Q_##N __attribute__((vector_size(4 * sizeof(T)))); \
    typedef T H_##N __attribute__((vector_size(8 * sizeof(T)))); \
    struct S_##N { \
        Q_##N a, b, c, d; \
        S_##N(V_##N v) : a(SHUFFLE(v, v, 0, 1, 2, 3)), b(SHUFFLE(v, v, 4, 5, 6, 7)), c(SHUFFLE(v, v, 8, 9, 10, 11)), d(SHUFFLE(v, v, 12, 13, 14, 15)) {} \
    }; \
    FN V_##N whole(const S_##N& s) { \
        const H_##N x = SHUFFLE(s.a, s.b, 0, 1, 2, 3, 4, 5, 6, 7), y = SHUFFLE(s.c, s.d, 0, 1, 2, 3, 4, 5, 6, 7); \
        return SHUFFLE(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); \
    }
#if defined(__clang__) || __GNUC__ < 12
SAME(f32) SAME(i32) SAME(u32) SAME(f64) SAME(i64) SAME(u64)
#elif defined(__AVX512F__)
SAME(f32) SAME(i32) SAME(u32) HALVES(f64, double) HALVES(i64, long) HALVES(u64, unsigned long)
#elif defined(__AVX__)
HALVES(f32, float) HALVES(i32, int) HALVES(u32, unsigned) QUARTERS(f64, double) QUARTERS(i64, long) QUARTERS(u64, unsigned long)
#else
QUARTERS(f32, float) QUARTERS(i32, int) QUARTERS(u32, unsigned) QUARTERS(f64, double) QUARTERS(i64, long) QUARTERS(u64, unsigned long)
#endif
// Lanes from the k-th on.
#if defined(__clang__) || __GNUC__ >= 12
#define FROM(N) template <int k> FN V_##N from_##N(V_##N v) { return SHUFFLE(v, v, k & 15, (k + 1) & 15, (k + 2) & 15, (k + 3) & 15, (k + 4) & 15, (k + 5) & 15, (k + 6) & 15, (k + 7) & 15, (k + 8) & 15, (k + 9) & 15, (k + 10) & 15, (k + 11) & 15, (k + 12) & 15, (k + 13) & 15, (k + 14) & 15, (k + 15) & 15); }
#else
#define FROM(N) template <int k> FN V_##N from_##N(V_##N v) { V_##N r; for (int i = 0; i < 16; ++i) r[i] = v[(i + k) & 15]; return r; }
#endif
FROM(f32) FROM(f64) FROM(i64) FROM(u64) FROM(i32) FROM(u32) FROM(i16) FROM(u16) FROM(i8) FROM(u8)
template <int k> FN V_b from_b(V_b v) { return from_i32<k>(v); }
// The first n lanes, fewer than 16. One by one they would take as long as the rest of a short row.
template <class V, class T> FN void first(V& r, const T* p, int n) { for (int k = 0; k < n; ++k) r[k] = p[k]; }
template <class V, class T> FN void putFirst(T* p, int n, const V& v) { for (int k = 0; k < n; ++k) p[k] = v[k]; }
#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 12)
#define LOWER(n) ((1u << (n)) - 1u)
#define MASKED(N, T) \
    FN void first(V_##N& r, const T* p, int n) { r = (V_##N)__builtin_ia32_loadups512_mask((const float*)p, V_f32{}, (unsigned short)LOWER(n)); } \
    FN void putFirst(T* p, int n, const V_##N& v) { __builtin_ia32_storeups512_mask((float*)p, (V_f32)v, (unsigned short)LOWER(n)); }
MASKED(f32, float) MASKED(i32, int) MASKED(u32, unsigned)
typedef double D8 __attribute__((vector_size(64)));
typedef double D16 __attribute__((vector_size(128)));
#define MASKED2(N, T) \
    FN void first(V_##N& r, const T* p, int n) { \
        const D8 a = __builtin_ia32_loadupd512_mask((const double*)p, D8{}, (unsigned char)LOWER(n < 8 ? n : 8)); \
        const D8 b = __builtin_ia32_loadupd512_mask((const double*)p + 8, D8{}, (unsigned char)(LOWER(n) >> 8)); \
        r = (V_##N)SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); \
    } \
    FN void putFirst(T* p, int n, const V_##N& v) { \
        const D16 d = (D16)v; \
        __builtin_ia32_storeupd512_mask((double*)p, SHUFFLE(d, d, 0, 1, 2, 3, 4, 5, 6, 7), (unsigned char)LOWER(n < 8 ? n : 8)); \
        __builtin_ia32_storeupd512_mask((double*)p + 8, SHUFFLE(d, d, 8, 9, 10, 11, 12, 13, 14, 15), (unsigned char)(LOWER(n) >> 8)); \
    }
MASKED2(f64, double) MASKED2(i64, long) MASKED2(u64, unsigned long)
#endif
// Built in registers: lanes set one by one go through memory, and the vector's load waits for them.
#define EACH(F) F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15)
#define AT(k) p[k * s]
#define IN(k) p[i[k]]
#define MEMORY(T, N) \
    FN V_##N ld_##N(const T* p, int n) { V_##N r = {}; if (n == 16) __builtin_memcpy(&r, p, sizeof r); else first(r, p, n); return r; } \
    FN V_##N lds_##N(const T* p, long s, int n) { if (n == 16) return V_##N{EACH(AT)}; V_##N r = {}; for (int k = 0; k < n; ++k) r[k] = p[k * s]; return r; } \
    FN V_##N ldg_##N(const T* p, V_i64 i, int n) { if (n == 16) return V_##N{EACH(IN)}; V_##N r = {}; for (int k = 0; k < n; ++k) r[k] = p[i[k]]; return r; } \
    FN void st_##N(T* p, int n, V_##N v) { if (n == 16) __builtin_memcpy(p, &v, sizeof v); else putFirst(p, n, v); } \
    FN void sts_##N(T* p, long s, int n, V_##N v) { if (n == 16) LANES p[k * s] = v[k]; else for (int k = 0; k < n; ++k) p[k * s] = v[k]; } \
    FN void stg_##N(T* p, V_i64 i, int n, V_##N v) { for (int k = 0; k < n; ++k) p[i[k]] = v[k]; }
)";

}  // namespace

std::string_view cppTypes() { return kTypes; }

}  // namespace cutaway
