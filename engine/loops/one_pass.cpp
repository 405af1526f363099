// Reductions over a row that need another one first, made independent of it.
#include "engine/loops/index.h"
#include "engine/loops/kernel_rules.h"
#include "engine/loops/reduction_axes.h"
#include "engine/loops/rewrite_reductions.h"

namespace cutaway {
namespace {

Expr makeStep(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}, a->dtype); }

/// The number of f32 elements of a row of at least `rowBytes`; 0 for shorter rows and unknown lengths.
int64_t longRow(const std::vector<Loop>& loops, const LoopTarget& target) {
    double count = 1;
    for (const Loop& loop : loops) count *= static_cast<double>(loop.size.asInt().value_or(0));
    const bool fits = count * 4 >= static_cast<double>(target.rowBytes) && count < 0x1p26;
    return fits ? static_cast<int64_t>(count) : 0;
}
/// `body` over the loops `from`, with the axes of `to`; null if the sizes differ.
Expr over(const std::vector<Loop>& from, const std::vector<Loop>& to, const Expr& body) {
    if (from.size() != to.size()) return Expr();
    for (size_t i = 0; i < from.size(); ++i)
        if (!(from[i].size == to[i].size)) return Expr();
    return replaceAxes(body, [&](int axis) {
        for (size_t i = 0; i < from.size(); ++i)
            if (from[i].axis == axis) return Expr::axis(to[i].axis);
        return Expr();
    });
}
bool readsAny(const Expr& e, const std::vector<Loop>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return reads(e, loop.axis); });
}
/// Whether what the expression loads is written by the kernel: then it is not the same when it is read once more.
bool readsWritten(const Expr& e, const Kernel& kernel) {
    bool found = false;
    forEachExpr({e}, [&](const Expr& part) {
        found |= part->kind == ExprKind::Load && kernel.buffers[static_cast<size_t>(bufferOf(part))].written;
    });
    return found;
}
bool isReduction(const Expr& e, ReduceKind kind) { return isReduce(e) && e->integer == static_cast<int>(kind); }
std::string loopsText(const std::vector<Loop>& loops) {
    std::string all;
    for (const Loop& loop : loops)
        all += (all.empty() ? "x" : ", x") + std::to_string(loop.axis) + " < " + loop.size.text();
    return all;
}

/// What is subtracted from x in a sum of (x - m)^2 over the loops: m, and x.
struct Deviation {
    Expr value, center;
};
std::optional<Deviation> deviationOf(const Expr& reduction, const std::vector<Loop>& loops) {
    const Expr& square = reduction->operands[0];
    if (!isReduction(reduction, ReduceKind::Sum) || square->dtype != DType::F32 || square->kind != ExprKind::Mul ||
        square->operands.size() != 2 || !(square->operands[0] == square->operands[1]) ||
        square->operands[0]->kind != ExprKind::Sub)
        return std::nullopt;
    const Expr &value = square->operands[0]->operands[0], &center = square->operands[0]->operands[1];
    if (readsAny(center, loops)) return std::nullopt;
    return Deviation{value, center};
}
bool isCount(const Expr& e, int64_t count) {
    if (e->kind == ExprKind::Float) return e->real == static_cast<double>(count);
    return e->kind == ExprKind::Cast && e->operands[0]->kind == ExprKind::Int && e->operands[0]->integer == count;
}
/// Whether m is the mean of x over the loops: sum(x)/n.
bool isMean(const Deviation& deviation, const std::vector<Loop>& loops, int64_t count) {
    const Expr& center = deviation.center;
    if (center->kind != ExprKind::Div || !isReduction(center->operands[0], ReduceKind::Sum) ||
        !isCount(center->operands[1], count))
        return false;
    const Expr expr = over(reduceLoops(center->operands[0]), loops, center->operands[0]->operands[0]);
    return expr && expr == deviation.value;
}

/// sum(d*d) - sum(d)^2/n where d = x - first.
Expr varianceSum(const Expr& value, const std::vector<Loop>& loops, int64_t count, ReductionAxes& axes) {
    const auto wide = [](const Expr& e) { return Expr::cast(e, DType::F64); };
    const Expr first = replaceAxes(value, [&](int axis) {
        const bool own = std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.axis == axis; });
        return own ? Expr::integer(0) : Expr();
    });
    const Expr d = makeStep(ExprKind::Sub, wide(value), wide(first));
    const int sum = static_cast<int>(ReduceKind::Sum);
    const Expr sums = axes.numbered(sum, loops, d), squares = axes.numbered(sum, loops, makeStep(ExprKind::Mul, d, d));
    const Expr common = makeStep(ExprKind::Div, makeStep(ExprKind::Mul, sums, sums),
                                 Expr::real(static_cast<double>(count), DType::F64));
    // Of equal elements the difference may be slightly negative by rounding.
    return Expr::cast(makeStep(ExprKind::Max, makeStep(ExprKind::Sub, squares, common), Expr::real(0, DType::F64)),
                      DType::F32);
}

}  // namespace

std::vector<std::string> onePassVariance(Kernel& kernel, const TargetInfo& target) {
    std::vector<std::string> said;
    if (target.sums != DType::F64) return said;  // squares without the mean need more digits than f32 has
    ReductionAxes axes(firstFreeAxis(kernel));
    ReductionRewriter rewriter([&](const Expr& reduction) {
        const std::vector<Loop> loops = reduceLoops(reduction);
        const int64_t count = longRow(loops, target.loops);
        const auto deviation = count ? deviationOf(reduction, loops) : std::nullopt;
        if (!deviation || !isMean(*deviation, loops, count) || readsWritten(deviation->value, kernel)) return reduction;
        said.push_back("the variance over " + loopsText(loops) + " is summed beside the mean, " +
                       std::to_string(count) + " elements are read once");
        return varianceSum(deviation->value, loops, count, axes);
    });
    for (KernelStore& store : kernel.stores) store.value = rewriter.rewrite(store.value);
    return said;
}

std::vector<std::string> onlineSoftmax(Kernel& kernel, const TargetInfo& target) {
    std::vector<std::string> said;
    if (!target.loops.onlineSoftmax) return said;
    const int sumExp = *reducerByName("sum_exp");
    ReductionRewriter rewriter([&](const Expr& reduction) {
        const std::vector<Loop> loops = reduceLoops(reduction);
        const int64_t count = longRow(loops, target.loops);
        const Expr& body = reduction->operands[0];
        if (!count || !isReduction(reduction, ReduceKind::Sum) || body->dtype != DType::F32 ||
            body->kind != ExprKind::Call || body->name != "exp" || body->operands[0]->kind != ExprKind::Sub)
            return reduction;
        const Expr &value = body->operands[0]->operands[0], &most = body->operands[0]->operands[1];
        if (!isReduction(most, ReduceKind::Max) || readsAny(most, loops) || readsWritten(value, kernel))
            return reduction;
        const Expr expr = over(reduceLoops(most), loops, most->operands[0]);
        if (!expr || !(expr == value)) return reduction;
        said.push_back("the exponentials over " + loopsText(loops) + " are summed beside the maximum, " +
                       std::to_string(count) + " elements are read once");
        // With the axes of the maximum, so that both are computed in one inner loop.
        return makeReduce(sumExp, reduceLoops(most), most->operands[0]);
    });
    for (KernelStore& store : kernel.stores) store.value = rewriter.rewrite(store.value);
    return said;
}

}  // namespace cutaway
