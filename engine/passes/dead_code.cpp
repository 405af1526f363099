#include "engine/passes/dead_code.h"

namespace cutaway {

Result<bool> eliminateDeadCode(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, eliminateDeadCode(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (!node->hasUsers() && isPure(*node)) {
            if (!rewriter.begin("dead node", *node, "nobody reads it")) return changed;
            graph.erase(*node);
            changed = true;
        }
        node = previous;
    }
    return changed;
}

}  // namespace cutaway
