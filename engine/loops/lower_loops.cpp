#include <algorithm>
#include <set>

#include "engine/loops/build_nest.h"
#include "engine/loops/index.h"
#include "engine/loops/inner_lanes.h"
#include "engine/loops/nest_text.h"
#include "engine/loops/vectorise.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct NestStep {
    std::string_view name;
    void (*run)(LoopNest&);
    bool (*wanted)(const LoopPlan&, const TargetInfo&) = nullptr;  // null: always
};
bool hasNarrowIndices(const LoopPlan& plan, const TargetInfo&) { return plan.indexBits == 32; }
bool lanesAreThreads(const LoopPlan&, const TargetInfo& target) { return target.loops.warp > 0; }

/// In this order. None of them chooses: what can be chosen is in the plan.
constexpr NestStep kSteps[] = {
    {"guards", splitGuards},
    {"vectorise", vectorise},
    {"unroll_jam", unrollAndJam},
    {"accumulators", splitAccumulators},
    {"reductions", lowerReductions},
    {"divisions", plainDivisions},
    {"indices", narrowIndices, hasNarrowIndices},
    {"share", shareValues},
    {"waits", waitToStore, lanesAreThreads},
};

Expr plainDivision(const Expr& e) {
    const bool division = e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod;
    if (!division || e->dtype != DType::I64 || e->operands[1].asInt().value_or(0) <= 0 ||
        !indexNeverNegative(e->operands[0]))
        return Expr();
    const Expr dividend = rewriteShared(e->operands[0], plainDivision);
    return Expr::call(e->kind == ExprKind::Mod ? "remainder" : "quotient", {dividend, e->operands[1]}, DType::I64);
}

/// What the runtime is told of the nests beside their statements.
void noteFacts(LoweredKernel& lowered, const TargetInfo& target) {
    Hasher content;
    content.add(target.name.text);
    for (LoopNest& nest : lowered.nests) {
        forEachStmt(nest.body, [&](const Stmt& stmt) {
            const auto* const loop = std::get_if<For>(&stmt.node);
            if (loop != nullptr && loop->map == Map::Parallel) nest.unit = std::max<int64_t>(nest.unit, loop->lanes);
        });
        // Where a block has several groups of lanes, each takes a step.
        if (nest.threads > nest.lanes) nest.unit *= nest.threads / nest.lanes;
        content.add(nest.threads);
        std::vector<Expr> values;
        forEachValueIn(nest.body, [&](const Expr& e) { values.push_back(e); });
        forEachExpr(values, [&](const Expr& e) {
            const bool division = e->kind == ExprKind::Div || e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod;
            lowered.checks |= (division && !isFloating(e->operands[0]->dtype)) ||
                              (e->kind == ExprKind::Call && e->name == "checked_index");
        });
        // Kernels that do the same share a function, whatever their names.
        content.add(std::string_view(keyText(nest)).substr(nest.name.size()));
    }
    lowered.function = "k" + content.finish().hex();
}

std::string texts(const std::vector<LoopNest>& nests) {
    std::string all;
    for (const LoopNest& nest : nests) all += (all.empty() ? "" : "\n") + text(nest);
    return all;
}

}  // namespace

namespace {

/// A store by one thread for all: not along the lanes.
const Store* storeForAll(const LoopNest& nest, const Stmt& stmt) {
    const auto* store = std::get_if<Store>(&stmt.node);
    return store && !store->step && lanesOf(nest, store->index) == 1 ? store : nullptr;
}
void waitIn(const LoopNest& nest, const std::set<int>& read, Body& body) {
    Body result;
    for (Stmt& stmt : body) {
        if (auto* loop = std::get_if<For>(&stmt.node)) waitIn(nest, read, loop->body);
        if (auto* branch = std::get_if<If>(&stmt.node)) waitIn(nest, read, branch->body);
        const Store* const store = storeForAll(nest, stmt);
        if (store && read.contains(store->buffer)) result.push_back({Barrier{}});
        result.push_back(std::move(stmt));
    }
    body = std::move(result);
}

}  // namespace

void waitToStore(LoopNest& nest) {
    if (nest.lanes == 1) return;
    std::set<int> read;
    forEachStmt(nest.body, [&](const Stmt& own) {
        if (storeForAll(nest, own)) return;  // its thread alone reads
        Stmt stmt = own;
        forEachValue(stmt, [&](const Expr& value) {
            forEachExpr({value}, [&](const Expr& e) {
                if (e->kind == ExprKind::Load && e->operands.size() == 1 && lanesOf(nest, e->operands[0]) == 1)
                    read.insert(bufferOf(e));
            });
        });
    });
    waitIn(nest, read, nest.body);
}

void plainDivisions(LoopNest& nest) {
    forEachValueIn(nest.body, [](Expr& e) { e = rewriteShared(e, plainDivision); });
}

LoweredKernel lowerLoops(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target,
                         std::vector<LoopStep>* steps) {
    const std::string problem = problemOf(plan, kernel, target);
    CT_CHECK(problem.empty(), problem.c_str());
    LoweredKernel lowered = buildNests(kernel, plan, target);
    for (LoopNest& nest : lowered.nests) {
        nest.lanes = plan.lanes;
        nest.warp = target.loops.warp;
        if (nest.warp > 0) nest.threads = groupsOf(plan, target) * std::min(plan.lanes, target.loops.lanes);
    }
    if (steps) steps->push_back({"build", texts(lowered.nests)});
    for (const NestStep& step : kSteps) {
        if (step.wanted && !step.wanted(plan, target)) continue;
        for (LoopNest& nest : lowered.nests) step.run(nest);
        if (steps) steps->push_back({std::string(step.name), texts(lowered.nests)});
    }
    noteFacts(lowered, target);
    return lowered;
}

}  // namespace cutaway
