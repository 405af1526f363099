#include "engine/schedule/traffic.h"

#include <limits>
#include <map>
#include <set>

#include "engine/support/saturated.h"

namespace cutaway {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

struct AxisSize {
    int64_t size = 1;
    std::set<int> follows;  // axes whose positions it depends on: over all of these it adds up to `size`
};

std::set<int> axesIn(const Expr& value) {
    std::set<int> axes;
    forEachExpr({value}, [&](const Expr& e) {
        if (e->kind == ExprKind::Axis) axes.insert(static_cast<int>(e->integer));
    });
    return axes;
}

AxisSize sizeOf(const SymInt& size, const std::function<int64_t(const SymInt&)>& likely) {
    const Expr& e = size.expr();
    bool data = false;
    forEachExpr({e}, [&](const Expr& part) { data |= part->kind == ExprKind::Load; });
    if (!data) return {likely(size), {}};
    if (e->kind == ExprKind::Call && e->name == "checked_index") return {likely(SymInt(e->operands[1])), axesIn(e)};
    return {kMost, {}};
}

}  // namespace

std::vector<int64_t> elementsRead(const Kernel& kernel, const std::function<int64_t(const SymInt&)>& likely) {
    std::vector<Expr> roots, loads;
    std::map<int, AxisSize> axes;
    for (const Loop& loop : kernel.outer) axes[loop.axis] = sizeOf(loop.size, likely);
    for (const KernelStore& store : kernel.stores) {
        for (const Loop& loop : store.inner) axes[loop.axis] = sizeOf(loop.size, likely);
        roots.insert(roots.end(), {store.index, store.value});
    }
    forEachExpr(roots, [&](const Expr& e) {
        if (e->kind == ExprKind::Load) loads.push_back(e);
        if (isReduce(e))
            for (const Loop& loop : reduceLoops(e)) axes[loop.axis] = sizeOf(loop.size, likely);
    });
    std::vector<int64_t> read(kernel.buffers.size(), 0);
    for (const Expr& load : loads) {
        const int buffer = bufferOf(load);
        if (buffer < 0) continue;
        const std::set<int> over = axesIn(load->operands[0]);
        std::set<int> counted;
        int64_t count = 1;
        for (const int axis : over)
            if (const AxisSize& size = axes[axis]; !size.follows.empty()) {
                count = saturatedProduct({count, size.size});
                counted.insert(size.follows.begin(), size.follows.end());
                counted.insert(axis);
            }
        for (const int axis : over)
            if (!counted.contains(axis)) count = saturatedProduct({count, axes[axis].size});
        addSaturated(read[static_cast<size_t>(buffer)], {count});
    }
    return read;
}

}  // namespace cutaway
