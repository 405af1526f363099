#include "engine/loops/inner_lanes.h"

#include <algorithm>

#include "engine/loops/index.h"

namespace cutaway {
namespace {

// Elements of a row that one thread of a warp takes, one after the other: of many rows, and of few.
constexpr int64_t kMostOfThread = 32, kLeastOfThread = 8;

}  // namespace

bool areShort(const Kernel& kernel, int64_t length, const TargetInfo& target) {
    constexpr int64_t kShort = 8;
    double rows = 1;
    for (const Loop& loop : kernel.outer) rows *= static_cast<double>(loop.size.asInt().value_or(0));
    const std::vector<Expr> reductions = reductionsOf(kernel);
    const bool windows =
        std::any_of(reductions.begin(), reductions.end(), [](const Expr& r) { return reduceLoops(r).size() > 1; });
    return target.loops.warp > 0 && windows && length <= kShort && rows >= target.loops.maxSplit * kShort;
}

int lanesOfRows(const Kernel& kernel, int64_t length, const TargetInfo& target) {
    const int warp = std::min(target.loops.warp, target.loops.lanes);
    if (warp < 2) return target.loops.lanes;
    double rows = 1;
    for (const Loop& loop : kernel.outer) rows *= static_cast<double>(loop.size.asInt().value_or(0));
    // Few rows leave cores idle, so that each has more threads.
    const int64_t most = rows >= target.loops.maxSplit ? kMostOfThread : kLeastOfThread;
    if (length > most * warp) return target.loops.lanes;
    int lanes = warp;
    while (lanes > 2 && lanes / 2 >= length) lanes /= 2;
    return lanes;
}

std::optional<int64_t> strideOf(const Expr& index, int axis) {
    const auto affine = affineIn(index, axis);
    return affine ? affine->coefficient.asInt() : std::nullopt;
}

int registersOf(const InnerLoop& inner, const std::vector<Expr>& reductions, const TargetInfo& target) {
    int count = 0;
    for (const int r : inner.reductions) {
        const Expr& reduction = reductions[static_cast<size_t>(r)];
        for (const DType state : reducerOf(reduction).stateTypes(reduction->operands[0]->dtype, target.sums))
            count += byteSize(state) == 8 ? 2 : 1;
    }
    return count;
}

int neighboursOf(const InnerLoop& inner, const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target) {
    const std::vector<Expr> reductions = reductionsOf(kernel);
    const Loop last = loopsOf(inner, kernel, reductions).back();
    std::vector<Expr> values;
    int narrowest = kBytesOfThread;
    bool beside = true;  // else neighbours in the row lie apart
    const auto see = [&](const Expr& index, DType dtype) {
        const int64_t stride = strideOf(index, last.axis).value_or(2);
        beside &= stride == 0 || stride == 1;
        if (stride == 1) narrowest = std::min(narrowest, byteSize(dtype));
    };
    for (const int r : inner.reductions) values.push_back(reductions[static_cast<size_t>(r)]->operands[0]);
    for (const int s : inner.stores) {
        const KernelStore& store = kernel.stores[static_cast<size_t>(s)];
        if (store.adds) return 1;
        values.push_back(store.value);
        see(store.index, kernel.buffers[static_cast<size_t>(store.buffer)].dtype);
    }
    int operations = 0;
    forEachExpr(values, [&](const Expr& e) {
        ++operations;
        if (e->kind == ExprKind::Load) see(e->operands[0], e->dtype);
    });
    if (!beside) return 1;
    const int64_t length = last.size.asInt().value_or(1 << 20) / plan.split;
    int count = std::clamp(kBytesOfThread / narrowest, 1, target.loops.maxAccumulators);
    while (count > 1 &&
           (length < int64_t{count} * plan.lanes || count * operations > target.fusion.unrollJamOperations ||
            count * registersOf(inner, reductions, target) > target.loops.stateRegisters))
        count /= 2;
    return count;
}

std::string whyFlat(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target) {
    if (target.loops.warp == 0 || plan.vectors != VectorOver::Rows || plan.unrollJam > 1 || plan.split > 1 ||
        plan.tiled >= 0 || plan.order.size() < 2)
        return {};
    size_t inLoops = 0;
    for (const InnerLoop& inner : plan.inner) inLoops += inner.reductions.size();
    if (inLoops < reductionsOf(kernel).size()) return {};  // some are the same for all rows
    const auto last = std::find_if(kernel.outer.begin(), kernel.outer.end(),
                                   [&](const Loop& loop) { return loop.axis == plan.order.back(); });
    const auto size = last->size.asInt();
    if (size && *size % target.loops.lanes != 0 && *size < 4 * target.loops.lanes)
        return "the last loop is short, and most threads of a block had none";
    for (const KernelStore& store : kernel.stores)
        if (strideOf(store.index, last->axis) != 1) return "results do not lie side by side along the last loop";
    return {};
}

int groupsOf(const LoopPlan& plan, const TargetInfo& target) {
    const bool narrow = plan.vectors == VectorOver::Inner && plan.lanes <= target.loops.warp;
    const bool alone = plan.vectors == VectorOver::Nothing && target.loops.warp > 0 && plan.cached.empty();
    return narrow || alone ? std::max(target.loops.lanes / plan.lanes, 1) : 1;
}

}  // namespace cutaway
