#include "engine/passes/joint/pass_pattern_0.h"

#include <algorithm>

#include "engine/passes/joint/attention.h"
#include "engine/passes/joint/misc_patterns.h"
#include "engine/passes/joint/pad_mm.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {

namespace {

std::vector<Rule> withAttention(TracedForms forms) { return joinRules({jointCleanupRules(), padProductRules(), attentionFormulas(forms).rules, randpermRules()}); }

/// What of attention a graph can hold. Every form has two batched products and an exponential; the backward of a softmax ends in
/// an fma. Where no graph of the module has them, the forms need not be traced, which takes some 50 ms once.
struct AttentionSigns {
    bool forward = false, backward = false;

    explicit AttentionSigns(const Module& module) {
        int products = 0, exponentials = 0, fused = 0;
        for (const Node& node : module.graph().nodes()) {
            if (node.kind() != NodeKind::Call) continue;
            const std::string_view packet = node.op().packet();
            products += packet == "aten.bmm" || packet == "aten.baddbmm" || packet == "aten.mm" || packet == "aten.matmul";
            exponentials += packet == "aten.exp" || packet.find("softmax") != std::string_view::npos;
            fused += packet == "prims.fma";
        }
        forward = products >= 2 && exponentials >= 1;
        backward = forward && products >= 6 && fused >= 1;
        for (const auto& [name, body] : module.subgraphs) {
            const AttentionSigns inside(*body);
            forward |= inside.forward;
            backward |= inside.backward;
        }
    }
};

}  // namespace

std::span<const Rule> passPattern0Rules() {
    static const std::vector<Rule> kRules = withAttention(TracedForms::Both);
    return kRules;
}

Result<bool> passPattern0(Module& module, Rewriter& rewriter) {
    const AttentionSigns signs(module);
    if (signs.backward) return rewriter.applyRules(module, passPattern0Rules());
    static const std::vector<Rule> kOthers = joinRules({jointCleanupRules(), padProductRules(), randpermRules()});
    if (!signs.forward) return rewriter.applyRules(module, kOthers);
    static const std::vector<Rule> kInference = withAttention(TracedForms::Inference);
    return rewriter.applyRules(module, kInference);
}

}  // namespace cutaway
