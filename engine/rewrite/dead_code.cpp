#include "engine/rewrite/dead_code.h"

#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

bool isDead(const Node& node, const Refusing& no) {
    if (node.isOutput()) return no("the graph ends with it");
    if (node.hasUsers()) {
        const Node& reader = *node.users()[0];
        return reader.isOutput() ? no("the graph returns it") : no.about(&reader, reader, " reads it");
    }
    if (node.isPlaceholder()) return no("nobody reads it, but the graph is called with it");
    if (isPure(node)) return true;
    return no("nobody reads it, but ", KindOf{node},
              node.op().mutates() ? " writes to its operand" : " does more than make a value");
}

}  // namespace

Result<bool> eliminateDeadCode(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, eliminateDeadCode(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (isDead(*node, {rewriter, "dead node", *node})) {
            if (rewriter.begin("dead node", *node, "nobody reads it") != Go::Yes) return changed;
            graph.erase(*node);
            changed = true;
        }
        node = previous;
    }
    return changed;
}

}  // namespace cutaway
