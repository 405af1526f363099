// The layouts of values between calls. They are free until a call that is no kernel wants one: convolutions of the
// library read and write channels last at full speed, and any other layout through copies.
#include "engine/libraries/choose.h"
#include "engine/ops/infer_rules.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr std::string_view kRule = "channels_last";

bool wantsChannelsLast(const Node& node, Rewriter& rewriter) {
    const Refusing no(rewriter, kRule, node);
    if (!node.isCall("aten.convolution.default")) return no("it is no convolution");
    const LibraryRow* const row = libraryRowOf(node);
    if (row == nullptr) return no(whyNoLibrary(node));
    if (row->library == kPortable) return no("the function that computes it is as fast in any layout");
    const TensorType* type = node.type().tensor();
    if (type->sizes.size() != 4) return no("its result, ", *type, ", has not four dims");
    if (!allInts(type->sizes) || !allInts(type->strides))
        return no("its result, ", *type, ", has sizes that are known only at run time");
    if (type->strides == *formatStrides(MemoryFormat::ChannelsLast, type->sizes))
        return no("its result lies that way already");
    return true;
}

/// What the graph returns keeps its strides: whoever called it relies on them.
class Returned {
  public:
    explicit Returned(Graph& graph) : m_graph(graph) {
        for (const Argument& output : graph.outputs())
            m_types.push_back(output.node() ? output.node()->type() : ValueType());
    }
    void keep(const Rewriter& rewriter) const {
        Node* const output = m_graph.outputNode();
        const std::vector<Argument> now = m_graph.outputs();
        for (size_t i = 0; i < now.size(); ++i) {
            Node* const node = now[i].node();
            const TensorType *was = m_types[i].tensor(), *is = node ? node->type().tensor() : nullptr;
            if (was == nullptr || is == nullptr || was->strides == is->strides) continue;
            Node& copy = laidOutLike(rewriter.builder(m_graph, output, *node), *node, *was);
            m_graph.replaceInput(*output, *node, copy);
        }
    }

  private:
    Graph& m_graph;
    std::vector<ValueType> m_types;
};

}  // namespace

Result<bool> assignLayouts(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    const Returned returned(graph);
    // From the last on: what follows a convolution then takes its layout as it is.
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (wantsChannelsLast(*node, rewriter)) {
            const Go go = rewriter.begin(kRule, *node, "the library writes channels last without a copy");
            if (go == Go::Stop) break;
            if (go == Go::Yes) {
                GraphBuilder builder = rewriter.builder(graph, node, *node);
                const Value again = builder.callBound(node->op(), node->args());
                if (builder.error()) return *builder.error();
                TensorType type = *node->type().tensor();
                type.strides = *formatStrides(MemoryFormat::ChannelsLast, type.sizes);
                graph.setType(*again.node(), type);
                rewriter.replace(*node, *again.node());
                returned.keep(rewriter);
            }
        }
        node = previous;
    }
    return rewriter.changed();
}

}  // namespace cutaway
