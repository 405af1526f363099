#include "engine/passes/operator_rewrites.h"

#include "engine/ops/op_registry.h"
#include "engine/passes/batch_rules.h"
#include "engine/passes/remove_noop_ops.h"

namespace cutaway {
namespace {

std::vector<CodeRewrite> expanded(bool all) {
    std::vector<CodeRewrite> out;
    for (const Op* op : allOps()) {
        if (!op->def()->decompose) continue;
        const Expand expand = op->def()->expand;
        if (expand == Expand::Composite || (all && expand == Expand::Decompose))
            out.push_back({op->name(), "The operator is written as smaller ones", op->name()});
    }
    return out;
}

}  // namespace

std::vector<CodeRewrite> noopRewrites(const Pass&) {
    std::vector<CodeRewrite> out;
    for (const std::string_view name : noopRules())
        out.push_back({name, "A call that returns its operand unchanged is dropped", name});
    return out;
}

std::vector<CodeRewrite> compositeRewrites(const Pass&) { return expanded(false); }
std::vector<CodeRewrite> decomposedRewrites(const Pass&) { return expanded(true); }
std::vector<CodeRewrite> keptRewrites(const Pass&) {
    std::vector<CodeRewrite> out;
    for (const Op* op : allOps())
        if (op->def()->decomposedIn.until)
            out.push_back({op->name(), "The operator is written as smaller ones", op->name()});
    return out;
}

std::vector<CodeRewrite> batchRewrites(const Pass& pass) {
    for (const batching::BatchRule& rule : batching::batchRules())
        if (rule.name == pass.name) return {{pass.name, pass.summary, rule.function}};
    return {};
}

}  // namespace cutaway
