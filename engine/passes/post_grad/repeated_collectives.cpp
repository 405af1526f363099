#include "engine/passes/post_grad/repeated_collectives.h"

#include <map>

#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kDeduplicate = "deduplicate_wait_tensors";

std::string_view unlessLinear(const Match& m) {
    const auto* reduction = m["op"].get<std::string>();
    if (reduction == nullptr || (*reduction != "sum" && *reduction != "avg"))
        return "the reduction {op} of sums is not the sum of the reductions";
    if (!m.isTensor("a") || !m.isTensor("b") || m.tensor("a").dtype != m.tensor("b").dtype)
        return "{a} and {b} differ in dtype";
    return "";
}

constexpr Rule kShared[] = {
    {.name = "dedup_reduce_scatters",
     .find = "p = _c10d_functional.reduce_scatter_tensor.default(a, $op, $size, $group); "
             "q = _c10d_functional.reduce_scatter_tensor.default(b, $op, $size, $group); "
             "u = _c10d_functional.wait_tensor.default(p); v = _c10d_functional.wait_tensor.default(q); "
             "y = aten.add.Tensor(u, v); return y",
     .replace = "s = aten.add.Tensor(a, b); r = _c10d_functional.reduce_scatter_tensor.default(s, $op, $size, $group); "
                "y = _c10d_functional.wait_tensor.default(r); return y",
     .unless = unlessLinear,
     .why = "the sum of two reductions is the reduction of the sum"},
};

}  // namespace

Result<bool> deduplicateWaits(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, deduplicateWaits(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    std::map<NodeId, Node*> firstWait;  // of what is waited for
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const next = node->next();
        Node* waited = node->isCall(kWait) ? node->arg(0).node() : nullptr;
        if (waited != nullptr) {
            // Waits for a wait are merged by now, unless the rule was skipped there.
            while (waited->isCall(kWait) && waited->arg(0).node() != nullptr) waited = waited->arg(0).node();
            const auto [known, isFirst] = firstWait.emplace(waited->id(), node);
            if (isFirst) {
                Refusing(rewriter, kDeduplicate, *node)("nothing waits for ", *waited, " before it");
            } else {
                const Go go = rewriter.begin(kDeduplicate, *node, "an earlier call has waited for it");
                if (go == Go::Stop) return changed;
                if (go == Go::Yes) {
                    rewriter.replace(*node, *known->second);
                    changed = true;
                }
            }
        }
        node = next;
    }
    return changed;
}

std::span<const Rule> sharedReduceScatterRules() { return kShared; }
Result<bool> shareReduceScatters(Module& module, Rewriter& rewriter) {
    for (bool changed = false;; changed = true) {
        CT_TRY(const bool again, rewriter.applyRules(module, kShared));
        if (!again) return changed;
    }
}

}  // namespace cutaway
