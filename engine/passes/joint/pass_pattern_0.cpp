#include "engine/passes/joint/pass_pattern_0.h"

#include <algorithm>

#include "engine/passes/joint/attention.h"
#include "engine/passes/joint/misc_patterns.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {

std::span<const Rule> passPattern0Rules() {
    static const std::vector<Rule> kRules = joinRules({jointCleanupRules(), attentionRules(), randpermRules()});
    return kRules;
}

namespace {

/// Every form of attention has two batched products and an exponential. Where no graph of the module has them, the forms need not be
/// traced, which takes some 50 ms once.
bool mayHoldAttention(const Module& module) {
    int products = 0, exponentials = 0;
    for (const Node& node : module.graph().nodes()) {
        if (node.kind() != NodeKind::Call) continue;
        const std::string_view packet = node.op().packet();
        products += packet == "aten.bmm" || packet == "aten.baddbmm" || packet == "aten.mm" || packet == "aten.matmul";
        exponentials += packet == "aten.exp" || packet.find("softmax") != std::string_view::npos;
    }
    if (products >= 2 && exponentials >= 1) return true;
    return std::any_of(module.subgraphs.begin(), module.subgraphs.end(), [](const auto& named) { return mayHoldAttention(*named.second); });
}

}  // namespace

Result<bool> passPattern0(Module& module, Rewriter& rewriter) {
    if (mayHoldAttention(module)) return rewriter.applyRules(module, passPattern0Rules());
    static const std::vector<Rule> kOthers = joinRules({jointCleanupRules(), randpermRules()});
    return rewriter.applyRules(module, kOthers);
}

}  // namespace cutaway
