#include "engine/codegen/cuda_prelude.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {
namespace {

// Names that operations of generated C++ use, in the words of CUDA.
constexpr std::string_view kCudaBase = R"(#define FN static __device__ __forceinline__
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nanf(s) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_nan(s) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_signbit(x) signOf(x)
template <class T, int kCount> struct List { T v[kCount]; };
FN int signOf(float x) { return __float_as_int(x) < 0; }
FN int signOf(double x) { return __double_as_longlong(x) < 0; }
)";

struct CudaSnippet {
    std::string_view name, text;
};

// `fault` is null in lanes that stand for no element.
constexpr CudaSnippet kCudaSnippets[] = {
    {"checked_index", R"(FN long checkedIndex(long i, long n, int* fault) {
    if (i >= 0 && i < n) return i;
    if (fault) *fault = 1;
    return 0;
}
)"},
    {"intdiv", R"(template <class T> FN T divTrunc(T a, T b, int* fault) {
    if (b == 0) { if (fault) *fault = 2; return 0; }
    return T(-1) < T(0) && b == T(-1) ? T(0) - a : a / b;
}
template <class T> FN T divFloor(T a, T b, int* fault) { const T q = divTrunc(a, b, fault); return q - T(b != 0 && (a < 0) != (b < 0) && q * b != a); }
template <class T> FN T modFloor(T a, T b, int* fault) { return b == 0 ? divTrunc(a, b, fault) : a - divFloor(a, b, fault) * b; }
)"},
    {"from_int", "template <class F, class T> FN F fromInt(T x) { return (F)x; }\n"},
    // As eager PyTorch does it on GPUs: through a register that keeps to its range, and from there by the low bits.
    {"to_int", R"(FN int signed4(float x) { return __float2int_rz(x); }
FN int signed4(double x) { return __double2int_rz(x); }
FN unsigned unsigned4(float x) { return __float2uint_rz(x); }
FN unsigned unsigned4(double x) { return __double2uint_rz(x); }
FN long signed8(float x) { return __float2ll_rz(x); }
FN long signed8(double x) { return __double2ll_rz(x); }
FN unsigned long unsigned8(float x) { return __float2ull_rz(x); }
FN unsigned long unsigned8(double x) { return __double2ull_rz(x); }
template <class T> FN signed char to_i8(T x) { return (signed char)signed4(x); }
template <class T> FN unsigned char to_u8(T x) { return (unsigned char)signed8(x); }
template <class T> FN short to_i16(T x) { return (short)signed4(x); }
template <class T> FN unsigned short to_u16(T x) { return (unsigned short)unsigned4(x); }
template <class T> FN int to_i32(T x) { return signed4(x); }
template <class T> FN unsigned to_u32(T x) { return unsigned4(x); }
template <class T> FN long to_i64(T x) { return signed8(x); }
template <class T> FN unsigned long to_u64(T x) { return unsigned8(x); }
)"},
    {"shift",
     R"(template <class T> FN T shl(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(0) : T((unsigned long)a << b); }
template <class T> FN T shr(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(a < 0 ? -1 : 0) : T(a >> b); }
)"},
    // A NaN wins, and of zeros the positive one is larger: as eager PyTorch on GPUs.
    {"minmax", R"(template <class T> FN T minS(T a, T b) { return b < a ? b : a; }
template <class T> FN T maxS(T a, T b) { return b > a ? b : a; }
FN double minS(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
FN double maxS(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
#if __CUDA_ARCH__ >= 800
FN float minS(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
FN float maxS(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#else
FN float minS(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
FN float maxS(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
#endif
)"},
    {"floormod", R"(FN float floorDivF(float a, float b) { return floorf(a / b); }
FN double floorDivF(double a, double b) { return floor(a / b); }
FN float floorModF(float a, float b) { const float m = fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
FN double floorModF(double a, double b) { const double m = fmod(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
)"},
    {"mem_f16",
     R"(FN float rd_f16(const unsigned short* p) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(*p)); return r; }
FN unsigned short toHalf(float v) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
FN void wr_f16(unsigned short* p, float v) { *p = toHalf(v); }
FN float round_f16(float v) { const unsigned short h = toHalf(v); return rd_f16(&h); }
)"},
    {"mem_bf16", R"(FN float rd_bf16(const unsigned short* p) { return __uint_as_float((unsigned)*p << 16); }
#if __CUDA_ARCH__ >= 900
FN unsigned short toBf(float v) { unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
#else
FN unsigned short toBf(float v) {
    const unsigned u = __float_as_uint(v);
    return v == v ? (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16) : (unsigned short)0x7fff;
}
#endif
FN void wr_bf16(unsigned short* p, float v) { *p = toBf(v); }
FN float round_bf16(float v) { return __uint_as_float((unsigned)toBf(v) << 16); }
)"},
    // Elements narrower than what the processor adds at once are changed within the word around them.
    {"add", R"(FN void add(float* p, float v) { atomicAdd(p, v); }
FN void add(double* p, double v) { atomicAdd(p, v); }
FN void add(int* p, int v) { atomicAdd(p, v); }
FN void add(unsigned* p, unsigned v) { atomicAdd(p, v); }
FN void add(long* p, long v) { atomicAdd((unsigned long long*)p, (unsigned long long)v); }
FN void add(unsigned long* p, unsigned long v) { atomicAdd((unsigned long long*)p, (unsigned long long)v); }
template <class T> FN void add(T* p, T v) {
    unsigned* const word = (unsigned*)((unsigned long)p & ~3ul);
    const unsigned at = ((unsigned)(unsigned long)p & 3u) * 8u, mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << at;
    unsigned old = *word, seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, (seen & ~mask) | ((((seen >> at) + (unsigned)v) << at) & mask));
    } while (old != seen);
}
)"},
    // Elements of a thread that lie side by side, of which there are m; all at once where none is missing.
    {"wide", R"(template <class T> FN bool allAtOnce(const T* p, int bytes, int m, int count) {
    return m >= count && ((unsigned long)p & (unsigned long)((bytes < 16 ? bytes : 16) - 1)) == 0;
}
template <int P, class T> FN void readWide(T (&r)[P], const T* p, int m) {
    constexpr int bytes = P * (int)sizeof(T);
    if (!allAtOnce(p, bytes, m, P)) { for (int i = 0; i < P; ++i) r[i] = i < m ? p[i] : T(0); }
    else if (bytes >= 16) for (int i = 0; i < bytes / 16; ++i) ((int4*)r)[i] = ((const int4*)p)[i];
    else if (bytes == 8) *(int2*)r = *(const int2*)p;
    else if (bytes == 4) *(int*)r = *(const int*)p;
    else for (int i = 0; i < P; ++i) r[i] = p[i];
}
template <int P, class T> FN void writeWide(T* p, const T (&r)[P], int m) {
    constexpr int bytes = P * (int)sizeof(T);
    if (!allAtOnce(p, bytes, m, P)) { for (int i = 0; i < P; ++i) if (i < m) p[i] = r[i]; }
    else if (bytes >= 16) for (int i = 0; i < bytes / 16; ++i) ((int4*)p)[i] = ((const int4*)r)[i];
    else if (bytes == 8) *(int2*)p = *(const int2*)r;
    else if (bytes == 4) *(int*)p = *(const int*)r;
    else for (int i = 0; i < P; ++i) p[i] = r[i];
}
)"},
    {"f_rsqrt", R"(FN float f_rsqrt(float x) { return 1.f / sqrtf(x); }
FN double f_rsqrt(double x) { return 1. / sqrt(x); }
)"},
    {"f_sigmoid", R"(FN float f_sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
FN double f_sigmoid(double x) { return 1. / (1. + exp(-x)); }
)"},
    {"f_digamma", R"(static __device__ double f_digamma(double x) {
    if (x == 0) return copysign(__builtin_inf(), -x);
    double r = 0;
    if (x < 0) {
        if (x == floor(x)) return __builtin_nan("");
        r = -3.14159265358979323846 / tan(3.14159265358979323846 * (x - trunc(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) r -= 1 / x;
    const double y = 1 / (x * x);
    return r + log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * (691. / 32760 - y / 12))))));
}
FN float f_digamma(float x) { return (float)f_digamma((double)x); }
)"},
};

/// Functions of CUDA's own library, which has each for double, and by the same name with an f for float.
struct CudaFunction {
    std::string_view name, wide;
    int operands = 1;
};
constexpr CudaFunction kCudaFunctions[] = {
    {"exp", "exp"},
    {"exp2", "exp2"},
    {"expm1", "expm1"},
    {"log", "log"},
    {"log2", "log2"},
    {"log10", "log10"},
    {"log1p", "log1p"},
    {"sqrt", "sqrt"},
    {"sin", "sin"},
    {"cos", "cos"},
    {"tan", "tan"},
    {"asin", "asin"},
    {"acos", "acos"},
    {"atan", "atan"},
    {"sinh", "sinh"},
    {"cosh", "cosh"},
    {"tanh", "tanh"},
    {"asinh", "asinh"},
    {"acosh", "acosh"},
    {"atanh", "atanh"},
    {"erf", "erf"},
    {"erfc", "erfc"},
    {"erfinv", "erfinv"},
    {"lgamma", "lgamma"},
    {"floor", "floor"},
    {"ceil", "ceil"},
    {"trunc", "trunc"},
    {"round", "rint"},
    {"pow", "pow", 2},
    {"atan2", "atan2", 2},
    {"fmod", "fmod", 2},
    {"hypot", "hypot", 2},
    {"copysign", "copysign", 2},
    {"nextafter", "nextafter", 2},
};

std::string functionText(const CudaFunction& f) {
    const std::string name(f.name), wide(f.wide);
    const auto of = [&](const std::string& type, const std::string& callee) {
        const bool two = f.operands == 2;
        return "FN " + type + " f_" + name + "(" + type + " x" + (two ? ", " + type + " y" : "") + ") { return " +
               callee + (two ? "(x, y)" : "(x)") + "; }\n";
    };
    return of("float", wide + "f") + of("double", wide);
}

}  // namespace

bool hasCudaHelper(std::string_view name) {
    const auto named = [&](const auto& row) { return row.name == name; };
    if (std::any_of(std::begin(kCudaSnippets), std::end(kCudaSnippets), named)) return true;
    if (!name.starts_with("f_")) return false;
    name.remove_prefix(2);
    return std::any_of(std::begin(kCudaFunctions), std::end(kCudaFunctions), named);
}

std::string cudaPrelude(const std::set<std::string>& helpers) {
    for (const std::string& helper : helpers)
        CT_CHECK(hasCudaHelper(helper), ("kernels for GPUs have no helper " + helper).c_str());
    std::string text(kCudaBase);
    for (const CudaSnippet& snippet : kCudaSnippets)
        if (helpers.contains(std::string(snippet.name))) text += snippet.text;
    for (const CudaFunction& function : kCudaFunctions)
        if (helpers.contains("f_" + std::string(function.name))) text += functionText(function);
    return text;
}

std::vector<std::string> cudaOptions(int capability, CudaCode code) {
    const std::string architecture = code == CudaCode::Ptx ? "compute_" : "sm_";
    return {"--gpu-architecture=" + architecture + std::to_string(capability), "--fmad=false", "--disable-warnings",
            "--split-compile=0"};
}

}  // namespace cutaway
