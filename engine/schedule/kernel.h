#pragma once
// Kernel: the second and last program form. An immutable loop nest over expressions, printed as C++ or CUDA.
//
//   for outer[0] for outer[1] ...                 // independent of each other, may run in parallel
//       stores without inner loops                // may contain reductions over their own bound symbols
//       for inner... each remaining store
//
// A reduction is an expression: Call "reduce_<kind>"(body, symbol, size, symbol, size, ...). Its symbols are bound in
// the body and named canonically, so equal reductions are equal expressions. Where a reduction is computed (once per
// row, or per element) follows from the loop symbols it reads. Elements of f16 and bf16 buffers are loaded under a Cast
// to f32 and rounded by the store. A value of boolean buffers is Bool.
#include <string>
#include <vector>

#include "engine/expr/expr.h"
#include "engine/ops/lower.h"

namespace cutaway {

struct Loop {
    std::string symbol;
    SymInt size;
};
/// A parameter of a kernel: where its first element is. Offsets count from there.
struct KernelBuffer {
    std::string name;  // "b0", "b1", ... in order of first use; Loads and Stores name it
    DType dtype = DType::F32;
    bool written = false;
};
struct Store {
    std::string buffer;
    std::vector<Loop> inner;
    Expr index, value;
};
struct Kernel {
    std::string name;
    std::vector<KernelBuffer> buffers;
    std::vector<std::string> sizes;  // size symbols it reads, sorted
    std::vector<Loop> outer;
    std::vector<Store> stores;
    bool reduces = false;
};

/// Structural identity without the name: kernels with equal keys print the same code.
std::string structureKey(const Kernel& kernel);
/// For people and tests.
std::string text(const Kernel& kernel);

// Reductions as expressions.
std::string_view reduceFunction(ReduceKind kind);
std::optional<ReduceKind> reduceKindOf(const Expr& expr);
std::vector<Loop> reduceLoops(const Expr& reduction);
Expr makeReduce(ReduceKind kind, const std::vector<Loop>& loops, const Expr& body);

/// Depth-first over a shared expression, each distinct node once, operands first.
void forEachExpr(const std::vector<Expr>& roots, const std::function<void(const Expr&)>& visit);
/// substitute() for shared expressions: each distinct node is rebuilt once. `replace` gives the new expression of a
/// symbol, or null to keep it.
Expr substituteShared(const Expr& expr, const std::function<Expr(const std::string&)>& replace);
/// The same expression with these operands, simplified by the constructors.
Expr withOperands(const Expr& expr, std::vector<Expr> operands);

}  // namespace cutaway
