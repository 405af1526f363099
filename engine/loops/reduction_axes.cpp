#include "engine/loops/reduction_axes.h"

namespace cutaway {

int ReductionAxes::heightOf(const Expr& expr) {
    int height = 0;
    forEachExpr({expr}, [&](const Expr& e) {
        if (!isReduce(e)) return;
        for (const Loop& loop : reduceLoops(e))
            if (auto found = m_heights.find(loop.axis); found != m_heights.end())
                height = std::max(height, found->second);
    });
    return height;
}

Expr ReductionAxes::numbered(int reducerNumber, const std::vector<Loop>& loops, const Expr& body) {
    const int height = heightOf(body) + 1;
    std::vector<Loop> own;
    std::map<int, Expr> renamed;
    for (size_t i = 0; i < loops.size(); ++i) {
        const auto [slot, fresh] = m_numbers.emplace(std::tuple(height, i, loops[i].size.expr()->hash), m_next);
        if (fresh) m_heights.emplace(m_next++, height);
        own.push_back({slot->second, loops[i].size});
        renamed.emplace(loops[i].axis, Expr::axis(slot->second));
    }
    const Expr inside = replaceAxes(body, [&](int axis) {
        auto found = renamed.find(axis);
        return found == renamed.end() ? Expr() : found->second;
    });
    return makeReduce(reducerNumber, own, inside);
}

int firstFreeAxis(const Kernel& kernel) {
    int last = -1;
    auto visit = [&](const Expr& e) {
        if (e->kind == ExprKind::Axis) last = std::max(last, static_cast<int>(e->integer));
    };
    auto visitLoops = [&](const std::vector<Loop>& loops) {
        for (const Loop& loop : loops) last = std::max(last, loop.axis);
    };
    visitLoops(kernel.outer);
    for (const KernelStore& store : kernel.stores) {
        visitLoops(store.inner);
        forEachExpr({store.index, store.value}, visit);
    }
    return last + 1;
}

}  // namespace cutaway
