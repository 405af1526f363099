// Reshapes that move nothing. A reshape may copy and so has a kernel; where the strides allow a view it becomes one,
// and its readers read the memory of its operand.
#include "engine/ops/alias.h"
#include "engine/rewrite/refusing.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr std::string_view kViewRule = "view_reshape";

bool movesNothing(const Node& node, Rewriter& rewriter) {
    const Refusing no(rewriter, kViewRule, node);
    if (!node.isCall("aten.reshape.default")) return no("it is not a reshape");
    if (!isSharingReshape(node)) return no("its operand's strides allow no such view");
    return true;
}

}  // namespace

Result<bool> viewReshapes(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const next = node->next();
        if (movesNothing(*node, rewriter)) {
            const Go go = rewriter.begin(kViewRule, *node, "its operand's strides allow it without a copy");
            if (go == Go::Stop) break;
            if (go == Go::Yes) {
                GraphBuilder builder = rewriter.builder(graph, node, *node);
                const Value view = builder.call("aten.view.default", {node->args()[0], node->args()[1]});
                if (builder.error()) return *builder.error();
                rewriter.replace(*node, *view.node());
            }
        }
        node = next;
    }
    return rewriter.changed();
}

}  // namespace cutaway
