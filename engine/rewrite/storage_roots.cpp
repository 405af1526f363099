#include "engine/rewrite/storage_roots.h"

#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// A mutating call whose result is the operand that it has written to.
bool returnsOperand(const Node& node) {
    return node.isCall() && node.op().mutates() && node.op().schema() && !node.op().schema()->returns.empty() &&
           node.op().schema()->returns[0].alias != 0;
}

/// A reshape copies only where strides do not allow a view.
bool isSharingReshape(const Node& node) {
    if (!node.isCall("aten.reshape.default") || !node.type().tensor()) return false;
    const Node* source = node.arg(0).node();
    return source && source->type().tensor() && viewStrides(source->tensor().sizes, source->tensor().strides, node.tensor().sizes).has_value();
}

}  // namespace

StorageRoots::StorageRoots(const Graph& graph) : m_root(graph.idLimit()) {
    for (const Node& node : graph.nodes()) {
        const bool item = node.isCall("operator.getitem");
        const bool aliases = node.is(Tag::View) || item || returnsOperand(node) || isSharingReshape(node);
        const Node* source = aliases && !node.args().empty() ? node.arg(0).node() : nullptr;
        // An item of a tuple shares memory only when the call that made the tuple is a view (split, unbind).
        const bool shares = source && (!item || source->is(Tag::View));
        m_root[index(node.id())] = shares ? rootOf(*source) : node.id();
        if (node.isPlaceholder() || node.kind() == NodeKind::GetAttr) m_inputs.insert(index(node.id()));
    }
    for (const Argument& value : graph.outputs())
        if (const Node* node = value.node()) m_outputs.insert(index(rootOf(*node)));
}

bool StorageRoots::mayReplace(const Node& node, const Node& source) const {
    const uint32_t mine = index(rootOf(node)), theirs = index(rootOf(source));
    return mine == theirs || !m_outputs.contains(mine) || !(m_inputs.contains(theirs) || m_outputs.contains(theirs));
}

void StorageRoots::merge(const Node& node, const Node& source) {
    if (isOutput(node)) m_outputs.insert(index(rootOf(source)));
}

}  // namespace cutaway
