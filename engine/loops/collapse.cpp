#include "engine/loops/collapse.h"

#include <algorithm>
#include <unordered_set>

#include "engine/loops/index.h"
#include "engine/loops/reduction_axes.h"
#include "engine/loops/rewrite_reductions.h"

namespace cutaway {
namespace {

/// Can `slow` and `fast` be walked as one loop in these expressions? Only if each use is part of a number
/// c*(slow*size(fast) + fast) + rest: an address, or what a condition compares.
bool mergeable(const std::vector<Expr>& roots, const Loop& slow, const Loop& fast) {
    bool ok = true;
    std::unordered_set<const ExprNode*> seen, reading;  // the latter: read one of the two
    forEachExpr(roots, [&](const Expr& e) {
        const bool itself = e->kind == ExprKind::Axis && (e->integer == slow.axis || e->integer == fast.axis);
        const auto reads = [&](const Expr& operand) { return reading.contains(&*operand); };
        if (itself || std::any_of(e->operands.begin(), e->operands.end(), reads)) reading.insert(&*e);
    });
    const auto readsEither = [&](const Expr& e) { return reads(e, slow.axis) || reads(e, fast.axis); };
    const auto isJoint = [&](const Expr& e) {
        if (e->dtype != DType::I64) return false;
        const auto s = affineIn(e, slow.axis), f = affineIn(e, fast.axis);
        return s && f && !readsEither(s->coefficient) && !readsEither(f->coefficient) &&
               s->coefficient == Expr::make(ExprKind::Mul, {fast.size.expr(), f->coefficient});
    };
    const auto walk = [&](const auto& self, const Expr& e) -> void {
        if (!ok || !reading.contains(&*e) || !seen.insert(&*e).second) return;
        if (isJoint(e)) {
            // The index may load indices from memory: what those loads read is checked, too.
            forEachExpr({e}, [&](const Expr& part) {
                if (part->kind == ExprKind::Load) self(self, part->operands[0]);
            });
        } else if (e->kind == ExprKind::Axis) {
            ok = false;
        } else {
            for (const Expr& operand : e->operands) self(self, operand);
        }
    };
    for (const Expr& root : roots) walk(walk, root);
    return ok;
}

std::vector<Expr> rootsOf(const Kernel& kernel) {
    std::vector<Expr> roots;
    for (const KernelStore& store : kernel.stores) {
        roots.push_back(store.index);
        roots.push_back(store.value);
    }
    return roots;
}

/// Removes the loop at `slowAt` and makes the next one the joint loop, with its axis. Expressions are not changed.
void mergeInto(std::vector<Loop>& loops, size_t slowAt) {
    loops[slowAt + 1].size = loops[slowAt].size * loops[slowAt + 1].size;
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(slowAt));
}

void dropAxis(Kernel& kernel, int dropped) {
    auto zero = [&](int axis) { return axis == dropped ? Expr::integer(0) : Expr(); };
    for (KernelStore& store : kernel.stores) {
        store.index = replaceAxes(store.index, zero);
        store.value = replaceAxes(store.value, zero);
    }
}

/// A reduction over loops that can be joined, over fewer of them. The joint loops are numbered again by their place and
/// size, so that equal reductions stay equal and different ones different.
Expr collapseReduction(const Expr& reduction, ReductionAxes& axes) {
    std::vector<Loop> loops = reduceLoops(reduction);
    Expr body = reduction->operands[0];
    const size_t before = loops.size();
    for (size_t i = 0; i + 1 < loops.size();) {
        if (!mergeable({body}, loops[i], loops[i + 1])) {
            ++i;
            continue;
        }
        const int slow = loops[i].axis;
        mergeInto(loops, i);
        body = replaceAxes(body, [&](int axis) { return axis == slow ? Expr::integer(0) : Expr(); });
    }
    return loops.size() == before ? reduction : axes.numbered(static_cast<int>(reduction->integer), loops, body);
}

}  // namespace

void collapseLoops(Kernel& kernel) {
    ReductionAxes axes(firstFreeAxis(kernel));
    ReductionRewriter reductions([&](const Expr& reduction) { return collapseReduction(reduction, axes); });
    for (KernelStore& store : kernel.stores) store.value = reductions.rewrite(store.value);
    for (size_t i = 0; i + 1 < kernel.outer.size();) {
        if (!mergeable(rootsOf(kernel), kernel.outer[i], kernel.outer[i + 1])) {
            ++i;
            continue;
        }
        dropAxis(kernel, kernel.outer[i].axis);
        mergeInto(kernel.outer, i);
    }
    for (size_t i = 0;;) {
        // Inner loops are the same for all stores that have any.
        std::vector<Loop>* inner = nullptr;
        for (KernelStore& store : kernel.stores)
            if (!store.inner.empty()) inner = &store.inner;
        if (inner == nullptr || i + 1 >= inner->size()) break;
        const Loop slow = (*inner)[i], fast = (*inner)[i + 1];
        if (!mergeable(rootsOf(kernel), slow, fast)) {
            ++i;
            continue;
        }
        dropAxis(kernel, slow.axis);
        for (KernelStore& store : kernel.stores)
            if (!store.inner.empty()) mergeInto(store.inner, i);
    }
}

}  // namespace cutaway
