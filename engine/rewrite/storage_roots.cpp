#include "engine/rewrite/storage_roots.h"

#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// The operand that a mutating call has written to and returns; null for other calls.
const Node* returnedOperand(const Node& node) {
    if (!node.isCall() || !node.op().mutates() || !node.op().schema() || node.op().schema()->returns.empty())
        return nullptr;
    const Schema& schema = *node.op().schema();
    for (size_t i = 0; i < schema.params.size() && i < node.args().size(); ++i)
        if (schema.params[i].mutated && schema.params[i].alias == schema.returns[0].alias) return node.arg(i).node();
    return nullptr;
}

/// A reshape copies only where strides do not allow a view.
bool isSharingReshape(const Node& node) {
    if (!node.isCall("aten.reshape.default") || !node.type().tensor()) return false;
    const Node* source = node.arg(0).node();
    return source && source->type().tensor() &&
           viewStrides(source->tensor().sizes, source->tensor().strides, node.tensor().sizes).has_value();
}

/// The operand whose memory the call's value shares; null for values with memory of their own.
const Node* sharedOperand(const Node& node) {
    if (const Node* written = returnedOperand(node)) return written;
    const bool item = node.isCall("operator.getitem");
    const bool aliases = node.is(Tag::View) || item || isSharingReshape(node);
    const Node* source = aliases && !node.args().empty() ? node.arg(0).node() : nullptr;
    // An item of a tuple shares memory only when the call that made the tuple is a view (split, unbind).
    return source && (!item || source->is(Tag::View)) ? source : nullptr;
}

bool isInput(const Node& root) { return root.isPlaceholder() || root.kind() == NodeKind::GetAttr; }

/// Whether an output shares the memory of this root.
bool isOutput(const Node& root) {
    const std::vector<const Node*> sharers = sharersOf(root);
    return std::any_of(sharers.begin(), sharers.end(), [](const Node* node) {
        return std::any_of(node->users().begin(), node->users().end(),
                           [](const Node* user) { return user->isOutput(); });
    });
}

}  // namespace

const Node& storageRoot(const Node& node) {
    const Node* root = &node;
    while (const Node* source = sharedOperand(*root)) root = source;
    return *root;
}

std::vector<const Node*> sharersOf(const Node& root) {
    std::vector<const Node*> sharers = {&root};
    for (size_t at = 0; at < sharers.size(); ++at) {
        const Node* node = sharers[at];
        for (const Node* user : node->users())
            if (sharedOperand(*user) == node) sharers.push_back(user);
    }
    return sharers;
}

bool mayReplace(const Node& node, const Node& source) {
    const Node &mine = storageRoot(node), &theirs = storageRoot(source);
    return &mine == &theirs || !isOutput(mine) || !(isInput(theirs) || isOutput(theirs));
}

StorageRoots::StorageRoots(const Graph& graph) : m_root(graph.idLimit()) {
    for (const Node& node : graph.nodes()) {
        const Node* source = sharedOperand(node);
        m_root[index(node.id())] = source ? rootOf(*source) : node.id();
        if (cutaway::isInput(node)) m_inputs.insert(index(node.id()));
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

bool storageIsRead(const Node& node) {
    const std::vector<const Node*> sharers = sharersOf(node);
    return std::any_of(sharers.begin(), sharers.end(), [](const Node* sharer) {
        return std::any_of(sharer->users().begin(), sharer->users().end(), [](const Node* user) {
            return user->isCall() && user->op().packet().starts_with("aten.as_strided");
        });
    });
}

}  // namespace cutaway
