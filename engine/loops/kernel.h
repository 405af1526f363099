#pragma once
// Kernel: what a kernel means, before anything is said of how it runs.
//
//   for outer[0] for outer[1] ...            // rows: independent of each other
//       every store, over its own inner loops
//
// A reduction is an expression (ExprKind::Reduce): a body over axes of its own, with their sizes as operands, so that a
// size may come from data (the length of a bag). Its axes are numbered by their place, so equal reductions are equal
// expressions. Where one is computed (once per row, or per element) follows from the axes it reads. Elements of f16 and
// bf16 buffers are loaded under a Cast to f32 and rounded by the store. A value of boolean buffers is Bool.
#include <functional>
#include <string>
#include <vector>

#include "engine/expr/expr.h"
#include "engine/loops/reducers.h"

namespace cutaway {

struct Loop {
    int axis = 0;
    SymInt size;
    bool operator==(const Loop&) const = default;
};
/// A parameter of a kernel: where its first element is. Offsets count from there. Loads and stores name it by its
/// number: "b0", "b1", ...
struct KernelBuffer {
    DType dtype = DType::F32;
    bool written = false;
    bool operator==(const KernelBuffer&) const = default;
};
struct KernelStore {
    int buffer = 0;
    std::vector<Loop> inner;
    Expr index, value;
    bool adds = false;  // to what stands there, in no order: then several rows may have one index
    bool operator==(const KernelStore&) const = default;
};
struct Kernel {
    std::string name;
    std::vector<KernelBuffer> buffers;
    std::vector<std::string> sizes;  // size symbols it reads, sorted
    std::vector<Loop> outer;
    std::vector<KernelStore> stores;
};

/// "b12"; "c3" for ~3, a scratch array of a nest.
std::string bufferName(int buffer);
/// The number of a load's buffer ("b12" is 12, "c3" is ~3).
int bufferOf(const Expr& load);

/// Whether a store of the kernel adds.
bool adds(const Kernel& kernel);
/// Structural identity without the name: kernels with equal keys have the same code.
std::string structureKey(const Kernel& kernel);

// Reductions as expressions.
inline bool isReduce(const Expr& expr) { return expr->kind == ExprKind::Reduce; }
inline const Reducer& reducerOf(const Expr& reduction) { return reducer(static_cast<int>(reduction->integer)); }
std::vector<Loop> reduceLoops(const Expr& reduction);
Expr makeReduce(int reducer, const std::vector<Loop>& loops, const Expr& body);
/// All distinct ones of the kernel, each after those that it contains: "r0", "r1", ... of its plan.
std::vector<Expr> reductionsOf(const Kernel& kernel);

/// Depth-first over a shared expression, each distinct node once, operands first.
void forEachExpr(const std::vector<Expr>& roots, const std::function<void(const Expr&)>& visit);
/// substitute() for shared expressions: each distinct node is rebuilt once. `replace` gives what a node becomes, or
/// null to go on to its operands.
Expr rewriteShared(const Expr& expr, const std::function<Expr(const Expr&)>& replace);
/// The same expression with these operands, simplified by the constructors.
Expr withOperands(const Expr& expr, std::vector<Expr> operands);
/// Replaces axes; `replace` gives the new expression of an axis, or null to keep it.
Expr replaceAxes(const Expr& expr, const std::function<Expr(int)>& replace);
/// Whether a call is of an instruction or two, unlike exponentials and their kin.
bool isCheapCall(const Expr& expr);
/// Whether keeping the value takes less time than computing it again: it holds a power or a call of more than an
/// instruction or two.
bool costsMuch(const Expr& value);

}  // namespace cutaway
