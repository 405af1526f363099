// Calls that no kernel, library or function of the device computes, written as calls that something does compute: a
// call on the host costs copies both ways.
#include "engine/autograd/expand.h"
#include "engine/libraries/choose.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/lowering.h"

namespace cutaway {
namespace {

constexpr std::string_view kRule = "expand_call";

/// Why a call stays as it is; empty if nothing computes it and it has an expansion.
std::string whyKept(const Node& node, const TargetInfo& target) {
    if (node.is(Tag::View)) return "it looks at its operand's memory";
    if (node.op().mutates()) return "it writes to memory that others see";
    if (const LibraryRow* const row = libraryRowOf(node, target))
        return "a library computes it: " + libraryText(*row, node);
    if (probe(node, target).lowers) return "a kernel computes it";
    if (node.op().def() == nullptr || !node.op().def()->decompose) return "it has no expansion";
    return {};
}

Result<bool> expandAllOf(Module& module, Rewriter& rewriter, const TargetInfo& target) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, expandAllOf(*body, rewriter, target));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const next = node->next();
        const std::string kept = node->isCall() ? whyKept(*node, target) : std::string();
        if (!kept.empty() && rewriter.watches(*node)) rewriter.refuse(kRule, *node, kept);
        if (!node->isCall() || !kept.empty()) {
            node = next;
            continue;
        }
        if (rewriter.outOfFuel() || rewriter.cancelled()) return changed;
        // The expansion may decline, so what it makes is only kept, and fuel only spent, if it does not.
        Node* const previous = node->previous();
        const std::string where = node->name();
        const NodeId id = node->id();
        CT_TRY(const bool expanded, expandCall(*node, rewriter));
        if (!expanded) {
            if (rewriter.watches(*node)) rewriter.refuse(kRule, *node, "it has no expansion for these operands");
            node = next;
            continue;
        }
        rewriter.record(kRule, graph, where, id);
        changed = true;
        // What the expansion made may need one in turn.
        node = previous ? previous->next() : graph.first();
    }
    return changed;
}

}  // namespace

Result<bool> expandCalls(Module& module, Rewriter& rewriter) {
    if (rewriter.disabled(kRule)) return false;
    return expandAllOf(module, rewriter, targetOf(module, rewriter.request()));
}

}  // namespace cutaway
