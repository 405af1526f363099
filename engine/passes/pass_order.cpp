#include "engine/passes/pass_order.h"

#include <algorithm>

#include "engine/support/near_names.h"

namespace cutaway {
namespace {

/// Whether the dependency is on this pass.
bool isOn(const Dependency& dependency, const PlannedPass& one) {
    if (dependency.first == kFunctionalPasses) return one.pass->functional;
    return dependency.first == one.pass->name || dependency.first == one.stage->name;
}

std::string quoted(std::string_view name) {
    std::string out = "'";
    return out.append(name).append("'");
}

using Plan = std::vector<PlannedPass>;

Plan::iterator find(Plan& plan, std::string_view graphName, std::string_view name) {
    return std::find_if(plan.begin(), plan.end(),
                        [&](const PlannedPass& one) { return one.graphName == graphName && one.pass->name == name; });
}

Result<void> checkRuns(const Plan& plan, const std::string& name) {
    std::string all;
    std::vector<std::string_view> names;
    for (const PlannedPass& one : plan) {
        if (one.pass->name == name) return {};
        names.push_back(one.pass->name);
        all += (all.empty() ? "there are: " : ", ") + std::string(one.pass->name);
    }
    Error error{ErrorCode::NotFound, "no pass named '" + name + "' runs", {}, {std::move(all)}};
    if (std::string near = suggestion(name, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

/// Names the first dependency that the order breaks.
Result<void> checkOrder(const Plan& now) {
    for (size_t i = 0; i < now.size(); ++i)
        for (size_t j = i + 1; j < now.size(); ++j)
            for (const auto& dependencies : {now[i].pass->after, now[i].after, now[i].stage->after})
                for (const Dependency& dependency : dependencies) {
                    if (!isOn(dependency, now[j]) || now[i].graphName != now[j].graphName) continue;
                    std::string sentence = quoted(now[i].pass->name);
                    sentence += " cannot run before " + quoted(now[j].pass->name) + ": ";
                    return invalidInput(sentence.append(dependency.why));
                }
    return {};
}

/// Moves the pass on one graph; does nothing where it or its anchor does not run there.
void move(Plan& plan, std::string_view graphName, const PassMove& how) {
    const auto from = find(plan, graphName, how.pass);
    if (from == plan.end() || find(plan, graphName, how.anchor) == plan.end()) return;
    const PlannedPass moved = *from;
    plan.erase(from);
    plan.insert(find(plan, graphName, how.anchor) + (how.before ? 0 : 1), moved);
}

}  // namespace

Result<void> movePasses(Plan& plan, const std::vector<PassMove>& moves) {
    std::vector<std::string_view> graphNames;
    for (const PlannedPass& one : plan)
        if (std::find(graphNames.begin(), graphNames.end(), one.graphName) == graphNames.end())
            graphNames.push_back(one.graphName);
    for (const PassMove& how : moves) {
        CT_TRY_VOID(checkRuns(plan, how.pass));
        if (how.pass == how.anchor) return invalidInput("'" + how.pass + "' cannot be moved beside itself");
        CT_TRY_VOID(checkRuns(plan, how.anchor));
        for (const std::string_view graphName : graphNames) move(plan, graphName, how);
    }
    return moves.empty() ? Result<void>() : checkOrder(plan);
}

}  // namespace cutaway
