#include "engine/codegen/cuda_printer.h"

#include <set>
#include <unordered_map>

#include "engine/codegen/cpp_expr.h"
#include "engine/codegen/cpp_operation.h"
#include "engine/expr/expr_parse.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

// Names that operations of generated C++ use, in the words of CUDA.
constexpr std::string_view kPrelude = R"(#define FN static __device__ __forceinline__
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nanf(s) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_nan(s) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_signbit(x) signbit(x)
template <class F, class T> FN F fromInt(T x) { return (F)x; }
FN long checkedIndex(long i, long n, int* fault) { if (i < 0 || i >= n) { *fault = 1; return 0; } return i; }
template <class T> FN T divTrunc(T a, T b, int* fault) {
    if (b == 0) { *fault = 2; return 0; }
    return T(-1) < T(0) && b == T(-1) ? T(0) - a : a / b;
}
template <class T> FN T divFloor(T a, T b, int* fault) { const T q = divTrunc(a, b, fault); return q - T(b != 0 && (a < 0) != (b < 0) && q * b != a); }
template <class T> FN T modFloor(T a, T b, int* fault) { return b == 0 ? divTrunc(a, b, fault) : a - divFloor(a, b, fault) * b; }
template <class T> FN T minS(T a, T b) { return a != a ? a : b < a || b != b ? b : a; }
template <class T> FN T maxS(T a, T b) { return a != a ? a : b > a || b != b ? b : a; }
FN float floorDivF(float a, float b) { return floorf(a / b); }
FN double floorDivF(double a, double b) { return floor(a / b); }
FN float floorModF(float a, float b) { const float m = fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
FN double floorModF(double a, double b) { const double m = fmod(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
template <class T> FN T shl(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(0) : T((unsigned long)a << b); }
template <class T> FN T shr(T a, T b) { return (unsigned long)b >= sizeof(T) * 8 ? T(a < 0 ? -1 : 0) : T(a >> b); }
FN void add(float* p, float v) { atomicAdd(p, v); }
FN void add(double* p, double v) { atomicAdd(p, v); }
FN void add(int* p, int v) { atomicAdd(p, v); }
FN void add(unsigned* p, unsigned v) { atomicAdd(p, v); }
FN void add(long* p, long v) { atomicAdd((unsigned long long*)p, (unsigned long long)v); }
FN void add(unsigned long* p, unsigned long v) { atomicAdd((unsigned long long*)p, (unsigned long long)v); }
#define UNARY(N, F) FN float f_##N(float x) { return F##f(x); } FN double f_##N(double x) { return F(x); }
UNARY(exp, exp) UNARY(exp2, exp2) UNARY(expm1, expm1) UNARY(log, log) UNARY(log2, log2) UNARY(log10, log10)
UNARY(log1p, log1p) UNARY(sqrt, sqrt) UNARY(sin, sin) UNARY(cos, cos) UNARY(tan, tan) UNARY(asin, asin)
UNARY(acos, acos) UNARY(atan, atan) UNARY(sinh, sinh) UNARY(cosh, cosh) UNARY(tanh, tanh) UNARY(asinh, asinh)
UNARY(acosh, acosh) UNARY(atanh, atanh) UNARY(erf, erf) UNARY(erfc, erfc) UNARY(lgamma, lgamma) UNARY(erfinv, erfinv)
UNARY(floor, floor) UNARY(ceil, ceil) UNARY(trunc, trunc) UNARY(round, rint)
FN float f_rsqrt(float x) { return 1.f / sqrtf(x); }
FN double f_rsqrt(double x) { return 1. / sqrt(x); }
FN float f_sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
FN double f_sigmoid(double x) { return 1. / (1. + exp(-x)); }
#define BINARY(N) FN float f_##N(float x, float y) { return N##f(x, y); } FN double f_##N(double x, double y) { return N(x, y); }
BINARY(pow) BINARY(atan2) BINARY(fmod) BINARY(hypot) BINARY(copysign) BINARY(nextafter)
)";

class CudaPrinter {
  public:
    explicit CudaPrinter(const LoopNest& nest) : m_nest(&nest) {
        for (size_t i = 0; i < nest.sizes.size(); ++i) m_sizes.emplace(nest.sizes[i], "n" + std::to_string(i));
    }
    std::string print() {
        line("const int k = threadIdx.x;");
        for (size_t i = 0; i < m_nest->buffers.size(); ++i) {
            const KernelBuffer& buffer = m_nest->buffers[i];
            const std::string type = (buffer.written ? "" : "const ") + cppMemoryType(buffer.dtype) + "*";
            line(type + " __restrict__ " + bufferName(static_cast<int>(i)) + " = (" + type + ")p[" + std::to_string(i) +
                 "];");
        }
        for (size_t i = 0; i < m_nest->sizes.size(); ++i) {
            const std::string number = std::to_string(i);
            if (symbolDType(m_nest->sizes[i]) == DType::F64)
                line("const double n" + number + " = __longlong_as_double(s[" + number + "]);");
            else line("const long n" + number + " = s[" + number + "];");
        }
        for (size_t i = 0; i < m_nest->scratch.size(); ++i)
            line("__shared__ " + cppMemoryType(m_nest->scratch[i].dtype) + " " + bufferName(~static_cast<int>(i)) +
                 "[" + std::to_string(m_nest->scratch[i].count) + "];");
        body(m_nest->body);
        return "extern \"C\" __global__ void " + m_nest->name +
               "(void* const* p, const long* s, long begin, long end, int* fault) {\n" + m_shared + m_text + "}\n";
    }

  private:
    void line(const std::string& code) { m_text += std::string(m_depth * 4, ' ') + code + "\n"; }
    void body(const Body& statements) {
        for (const Stmt& stmt : statements) std::visit([&](const auto& own) { on(own); }, stmt.node);
    }
    static std::string x(int axis) { return "x" + std::to_string(axis); }
    static std::string t(int var) { return "t" + std::to_string(var); }
    std::string lanes() const { return std::to_string(m_nest->lanes); }

    void on(const For& loop) {
        const bool parts = loop.map == Map::Parts;
        std::string from = value(loop.from), to = value(loop.to), step = loop.lanes > 1 ? lanes() : "1";
        if (parts) {
            from = "(begin > " + from + " ? begin : " + from + ") + (long)blockIdx.x * " + step;
            to = "(end < " + to + " ? end : " + to + ")";
            step = "(long)gridDim.x * " + step;
        }
        const std::string axis = x(loop.axis),
                          last = "end" + std::to_string(m_next++);  // pieces of one loop stand side by side
        line("const long " + last + " = " + to + ";");
        line("for (long " + axis + " = " + from + "; " + axis + " < " + last + "; " + axis + " += " + step + ") {");
        ++m_depth;
        if (loop.lanes > 1) line("const int n = (int)min((long)" + lanes() + ", " + last + " - " + axis + ");");
        body(loop.body);
        --m_depth;
        line("}");
    }
    void on(const If& branch) {
        line("if (" + value(branch.condition) + ") {");
        ++m_depth;
        body(branch.body);
        --m_depth;
        line("}");
    }
    void on(const Index& index) { line("const long " + x(index.axis) + " = " + value(index.value) + ";"); }
    void on(const Let& let) { define("const ", let.var, let.value); }
    void on(const Declare& own) { define("", own.var, own.value); }
    void define(const std::string& prefix, int var, const Expr& expr) {
        if (expr->kind == ExprKind::Call && (expr->name == "lane" || expr->name == "lanes_from"))
            share(expr->operands[0]);
        line(prefix + cppValueType(m_nest->vars[static_cast<size_t>(var)].dtype) + " " + t(var) + " = " + value(expr) +
             ";");
    }
    void on(const Set& set) { line(t(set.var) + " = " + value(set.value) + ";"); }
    void on(const Barrier&) { line("__syncthreads();"); }
    void on(const Fetch& fetch) {
        line("asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(" + bufferName(fetch.buffer) + " + (" +
             value(fetch.index) + ")));");
    }
    void on(const Turn& turn) {
        const std::string columns = value(turn.columns), row = "e / " + columns, column = "e % " + columns;
        const auto element = [&](const Turn::Side& side, const std::string& i, const std::string& j) {
            const std::string first = side.index.asInt() == 0 ? "" : value(side.index) + " + ";
            return bufferName(side.buffer) + "[" + first + i + " * " + value(side.step) + " + " + j + "]";
        };
        line("for (int e = k; e < " + value(turn.rows) + " * " + columns + "; e += " + lanes() + ") " +
             element(turn.to, column, row) + " = " + element(turn.from, row, column) + ";");
    }
    template <class S>
    void on(const S&) {
        if constexpr (!std::is_same_v<S, Store>) CT_CHECK(false, "reductions are lowered before nests are printed");
    }
    void on(const Store& store) {
        const Expr at = store.index;
        const bool spread = store.step || lanesOf(*m_nest, at) > 1;
        const std::string step = store.step ? " + k * (" + value(store.step) + ")" : "";
        const std::string element = bufferName(store.buffer) + "[" + value(at) + step + "]";
        const std::string which = spread ? "if (k < n) " : "if (k == 0) ";
        if (store.how == StoreHow::Puts) return line(which + element + " = " + value(store.value) + ";");
        // Lanes may have one index, whatever other blocks do.
        line(which + "add(&" + element + ", " + value(store.value) + ");");
    }

    /// Puts the lanes of a vector, one of each thread, into shared memory for all threads of the block.
    void share(const Expr& vector) {
        const std::string own = "s" + std::to_string(vector->integer);
        if (m_isShared.insert(vector->integer).second)
            m_shared += "    __shared__ " + cppValueType(vector->dtype) + " " + own + "[" + lanes() + "];\n";
        line("__syncthreads();");
        line(own + "[k] = " + value(vector) + ";");
        line("__syncthreads();");
    }

    std::string value(const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return cppLiteral(e);
            case ExprKind::Symbol: return m_sizes.at(e->name);
            case ExprKind::Axis: return x(static_cast<int>(e->integer));
            case ExprKind::Var: return t(static_cast<int>(e->integer));
            case ExprKind::Load: return load(e);
            case ExprKind::Call:
                if (e->name == "ramp")
                    return (e->dtype == DType::I32 ? "((int)" : "(") + value(e->operands[0]) + " + k)";
                if (e->name == "active") return "(k < n)";
                if (e->name == "lane")
                    return "s" + std::to_string(e->operands[0]->integer) + "[" + value(e->operands[1]) + "]";
                if (e->name == "lanes_from")
                    return "s" + std::to_string(e->operands[0]->integer) + "[(k + " + value(e->operands[1]) + ") % " +
                           lanes() + "]";
                break;
            default: break;
        }
        std::vector<Code> in;
        for (const Expr& operand : e->operands) {
            const std::string own = value(operand);
            in.push_back({operand->operands.empty() ? own : "(" + own + ")", false});
        }
        return cppOperation(e, in, false, m_helpers);
    }
    std::string load(const Expr& e) {
        const bool boolean = e->dtype == DType::Bool;
        const std::string type = cppMemoryType(e->dtype);
        const std::string buffer =
            type == cppMemoryType(m_nest->memoryOf(e)) ? e->name : "((const " + type + "*)" + e->name + ")";
        const std::string step = e->operands.size() == 2 ? " + k * (" + value(e->operands[1]) + ")" : "";
        const std::string element = buffer + "[" + value(e->operands[0]) + step + "]" + (boolean ? " != 0" : "");
        const bool spread = e->operands.size() == 2 || lanesOf(*m_nest, e->operands[0]) > 1;
        return spread ? "(k < n ? " + element + " : (" + cppValueType(e->dtype) + ")0)" : "(" + element + ")";
    }

    const LoopNest* m_nest;
    std::unordered_map<std::string, std::string> m_sizes;
    std::set<std::string> m_helpers;  // all in the prelude
    std::string m_text, m_shared;
    std::set<int64_t> m_isShared;  // vectors with an array of their own
    size_t m_depth = 1;
    int m_next = 0;
};

}  // namespace

Result<CudaKernel> printCuda(const LoweredKernel& kernel) {
    CudaKernel printed;
    printed.source = "// Generated by Cutaway.\n" + std::string(kPrelude);
    printed.workspace = kernel.workspace;
    for (const LoopNest& nest : kernel.nests) {
        for (const KernelBuffer& buffer : nest.buffers)
            if (isHalf(buffer.dtype))
                return unsupported("CUDA kernels over " + std::string(info(buffer.dtype).abbreviation), nest.name,
                                   {"run it on the CPU"});
        printed.source += "\n" + CudaPrinter(nest).print();
        printed.launches.push_back({nest.name, nest.range, nest.lanes});
    }
    return printed;
}

}  // namespace cutaway
