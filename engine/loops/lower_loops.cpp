#include <algorithm>

#include "engine/loops/build_nest.h"
#include "engine/loops/index.h"
#include "engine/loops/nest_text.h"
#include "engine/loops/vectorise.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct NestStep {
    std::string_view name;
    void (*run)(LoopNest&);
    bool (*wanted)(const LoopPlan&) = nullptr;  // null: always
};
bool hasNarrowIndices(const LoopPlan& plan) { return plan.indexBits == 32; }

/// In this order. None of them chooses: what can be chosen is in the plan.
constexpr NestStep kSteps[] = {
    {"guards", splitGuards},
    {"vectorise", vectorise},
    {"jam", jamRows},
    {"abreast", takeAbreast},
    {"reductions", lowerReductions},
    {"divisions", plainDivisions},
    {"indices", narrowIndices, hasNarrowIndices},
    {"share", shareValues},
};

Expr plainDivision(const Expr& e) {
    const bool division = e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod;
    if (!division || e->dtype != DType::I64 || e->operands[1].asInt().value_or(0) <= 0 ||
        !indexNeverNegative(e->operands[0]))
        return Expr();
    const Expr dividend = rewriteShared(e->operands[0], plainDivision);
    return Expr::call(e->kind == ExprKind::Mod ? "remainder" : "quotient", {dividend, e->operands[1]}, DType::I64);
}

std::string texts(const std::vector<LoopNest>& nests) {
    std::string all;
    for (const LoopNest& nest : nests) all += (all.empty() ? "" : "\n") + text(nest);
    return all;
}

}  // namespace

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
        if (nest.warp > 0) nest.threads = std::min(plan.lanes, target.loops.lanes);
    }
    if (steps) steps->push_back({"build", texts(lowered.nests)});
    for (const NestStep& step : kSteps) {
        if (step.wanted && !step.wanted(plan)) continue;
        for (LoopNest& nest : lowered.nests) step.run(nest);
        if (steps) steps->push_back({std::string(step.name), texts(lowered.nests)});
    }
    return lowered;
}

}  // namespace cutaway
