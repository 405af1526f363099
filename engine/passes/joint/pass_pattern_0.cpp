#include "engine/passes/joint/pass_pattern_0.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/passes/joint/attention.h"
#include "engine/passes/joint/misc_patterns.h"
#include "engine/passes/joint/pad_mm.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {

namespace {

std::vector<Rule> withAttention(TracedForms forms) {
    return joinRules({jointCleanupRules(), padProductRules(), attentionFormulas(forms).rules, randpermRules()});
}

/// Which forms of attention a graph can hold. Every form has two batched products and an exponential; the backward of a
/// softmax ends in an fma. Other forms need not be traced, which takes some 30 ms for each quarter of the rules.
struct AttentionSigns {
    bool forward = false, backward = false, half = false;

    explicit AttentionSigns(const Module& module) {
        int products = 0, exponentials = 0, fused = 0;
        for (const Node& node : module.graph().nodes()) {
            const TensorType* type = node.type().tensor();
            half |= type && isHalf(type->dtype);
            if (node.kind() != NodeKind::Call) continue;
            const std::string_view packet = node.op().packet();
            products +=
                packet == "aten.bmm" || packet == "aten.baddbmm" || packet == "aten.mm" || packet == "aten.matmul";
            exponentials += packet == "aten.exp" || packet.find("softmax") != std::string_view::npos;
            fused += packet == "prims.fma";
        }
        forward = products >= 2 && exponentials >= 1;
        backward = forward && products >= 6 && fused >= 1;
        for (const auto& [name, body] : module.subgraphs) {
            const AttentionSigns inside(*body);
            forward |= inside.forward;
            backward |= inside.backward;
            half |= inside.half;
        }
    }
};

/// The table with the forms of attention that a graph can hold; each of the four is made on first use.
std::span<const Rule> tableFor(const AttentionSigns& signs) {
    static std::map<std::pair<bool, bool>, std::vector<Rule>> tables;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const std::pair key(signs.backward, signs.half);
    auto found = tables.find(key);
    if (found == tables.end()) found = tables.emplace(key, withAttention({signs.backward, signs.half})).first;
    return found->second;
}

}  // namespace

std::span<const Rule> passPattern0Rules() {
    static const std::vector<Rule> kRules = withAttention({});
    return kRules;
}

Result<bool> passPattern0(Module& module, Rewriter& rewriter) {
    const AttentionSigns signs(module);
    if (signs.forward) return rewriter.applyRules(module, tableFor(signs));
    static const std::vector<Rule> kOthers = joinRules({jointCleanupRules(), padProductRules(), randpermRules()});
    return rewriter.applyRules(module, kOthers);
}

}  // namespace cutaway
