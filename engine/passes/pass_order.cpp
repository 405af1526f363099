#include "engine/passes/pass_order.h"

#include <algorithm>

#include "engine/support/near_names.h"

namespace cutaway {
namespace {

/// `then` depends on `first`. "@stage" means every pass of that stage.
struct Dependency {
    std::string_view first, then, why;
};
constexpr Dependency kDependencies[] = {
    {"@pre_grad", "torch_calls_to_aten", "the pre-grad passes read calls as Python wrote them"},
    {"inline_wrappers", "torch_calls_to_aten", "the switches between modes that it writes get their effect there"},
    {"torch_calls_to_aten", "expand_composites", "only ATen operators are expanded"},
    {"torch_calls_to_aten", "functionalize", "which calls mutate is known of ATen operators"},
    {"move_to_device", "expand_composites", "what attention becomes depends on the device"},
    {"expand_composites", "functionalize", "the views inside shorthand operators have to be seen"},
    {"functionalize", "differentiate", "derivatives are taken of functional graphs"},
    {"expand_composites", "differentiate", "shorthand operators have no derivative of their own"},
    {"differentiate", "decompose", "derivatives belong to operators as they are before they are expanded"},
    {"decompose", "@joint", "the rules of the joint stage are written for expanded operators"},
    {"decompose", "@post_grad", "the rules of the post-grad stage are written for expanded operators"},
    {"normalization_pass", "@pre_grad:3", "it looks for splits as normalization_pass spells them"},
    {"auto_chunker", "pass_pattern_0", "its rules do not know padded products"},
    {"pass_pattern_0", "pass_pattern_1", "attention is known by its softmax, which pass_pattern_1 rewrites"},
    {"pass_pattern_0", "replace_random_passes", "dropout in attention is known by its rand"},
    {"canonicalize_aten_ir_passes", "remove_noop_ops", "it runs before everything else of its stage"},
    {"early_patterns", "pass_pattern_0", "attention is looked for without views that do nothing"},
    {"remove_noop_ops", "pass_pattern_0", "attention is looked for without operators that do nothing"},
    {"@joint", "view_to_reshape", "the rules of the joint stage look for views"},
    {"@functional", "reinplace_inplaceable_ops", "behind it the graph is not functional any more"},
};

bool standsFor(std::string_view name, const Pass& pass) {
    if (name.substr(0, 1) != "@") return pass.name == name;
    if (name == "@functional") return pass.functional && pass.stage != "capture" && pass.stage != "pre_grad";
    if (name == "@pre_grad:3") return pass.stage == "pre_grad" && pass.optional == 3;
    return pass.stage == name.substr(1);
}

std::string quoted(std::string_view name) {
    std::string out = "'";
    return out.append(name).append("'");
}

Result<size_t> positionOf(const std::vector<const Pass*>& plan, const std::string& name) {
    const auto found = std::find_if(plan.begin(), plan.end(), [&](const Pass* pass) { return pass->name == name; });
    if (found != plan.end()) return static_cast<size_t>(found - plan.begin());
    std::string all;
    std::vector<std::string_view> names;
    for (const Pass* pass : plan) {
        names.push_back(pass->name);
        all += (all.empty() ? "there are: " : ", ") + std::string(pass->name);
    }
    Error error{ErrorCode::NotFound, "no pass named '" + name + "' runs", {}, {std::move(all)}};
    if (std::string near = suggestion(name, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

/// Names the first dependency that the order breaks.
Result<void> checkOrder(const std::vector<const Pass*>& now) {
    for (size_t i = 0; i < now.size(); ++i)
        for (size_t j = i + 1; j < now.size(); ++j)
            for (const Dependency& rule : kDependencies) {
                if (!standsFor(rule.then, *now[i]) || !standsFor(rule.first, *now[j])) continue;
                std::string sentence = quoted(now[i]->name);
                sentence += " cannot run before " + quoted(now[j]->name) + ": ";
                return invalidInput(sentence.append(rule.why));
            }
    return {};
}

}  // namespace

Result<void> movePasses(std::vector<const Pass*>& plan, const std::vector<PassMove>& moves) {
    for (const PassMove& move : moves) {
        CT_TRY(const size_t from, positionOf(plan, move.pass));
        const Pass* pass = plan[from];
        if (move.pass == move.anchor) return invalidInput("'" + move.pass + "' cannot be moved beside itself");
        CT_TRY_VOID(positionOf(plan, move.anchor));
        plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(from));
        CT_TRY(const size_t to, positionOf(plan, move.anchor));
        plan.insert(plan.begin() + static_cast<std::ptrdiff_t>(to + (move.before ? 0 : 1)), pass);
    }
    return moves.empty() ? Result<void>() : checkOrder(plan);
}

}  // namespace cutaway
