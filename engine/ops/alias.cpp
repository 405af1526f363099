#include "engine/ops/alias.h"

#include "engine/ir/unbacked_sizes.h"
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

bool isLazyView(const Node& node) { return node.isCall("aten._conj.default") || node.isCall("aten._neg_view.default"); }

bool isSharingReshape(const Node& node) {
    if (!node.isCall("aten.reshape.default") || !node.type().tensor()) return false;
    const Node* source = node.arg(0).node();
    return source && source->type().tensor() &&
           viewStrides(source->tensor().sizes, source->tensor().strides, node.tensor().sizes).has_value();
}

const Node* sharedOperand(const Node& node) {
    if (const Node* written = returnedOperand(node)) return written;
    const bool item = node.isCall("operator.getitem");
    const bool aliases = node.is(Tag::View) || item || isSharingReshape(node);
    const Node* source = aliases && !node.args().empty() ? node.arg(0).node() : nullptr;
    // An item of a tuple shares memory only when the call that made the tuple is a view (split, unbind).
    return source && (!item || source->is(Tag::View)) ? source : nullptr;
}

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

namespace {

/// Operators that update their running statistics where a flag is set, which their schemas do not say.
bool updatesStatistics(const Node& node) {
    static constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
        {"aten.batch_norm.default", "training"},
        {"aten.native_batch_norm.default", "training"},
        {"aten.instance_norm.default", "use_input_stats"}};
    for (const auto& [op, flag] : kFlags)
        if (node.isCall(op))
            return node.arg(static_cast<size_t>(node.op().schema()->find(flag))).asInt().value_or(1) != 0;
    return false;
}

}  // namespace

bool writesOperands(const Node& node) { return node.isCall() && (node.op().mutates() || updatesStatistics(node)); }
std::vector<const Node*> writtenOperands(const Node& node) {
    std::vector<const Node*> out;
    if (!writesOperands(node) || !node.op().schema()) return out;
    const bool statistics = updatesStatistics(node);
    const auto& params = node.op().schema()->params;
    for (size_t i = 0; i < params.size() && i < node.args().size(); ++i)
        if (params[i].mutated || (statistics && params[i].name.starts_with("running_")))
            node.arg(i).forEachNode([&](const Node* each) { out.push_back(each); });
    return out;
}
bool isExpanded(const TensorType& type) {
    if (std::find(type.sizes.begin(), type.sizes.end(), SymInt(0)) != type.sizes.end()) return false;
    for (size_t d = 0; d < type.sizes.size(); ++d)
        if (type.strides[d] == SymInt(0) && type.sizes[d].isInt() && type.sizes[d].value() > 1) return true;
    return false;
}

std::vector<bool> writtenNodes(const Graph& graph) {
    std::vector<bool> out(graph.idLimit(), false), roots(graph.idLimit(), false);
    const StorageRoots shared(graph);
    for (const Node& node : graph.nodes())
        for (const Node* target : writtenOperands(node)) roots[index(shared.rootOf(*target))] = true;
    for (const Node& node : graph.nodes()) out[index(node.id())] = roots[index(shared.rootOf(node))];
    return out;
}

namespace {

/// Views and items only name memory; whoever reads them reads it.
bool onlyNamesMemory(const Node& node) {
    return !node.isCall() || (!node.op().mutates() && (node.is(Tag::View) || node.isCall("operator.getitem")));
}

/// What has happened to one memory so far.
struct Traffic {
    const Node* write = nullptr;       // the latest
    std::vector<const Node*> readers;  // since then
};

}  // namespace

const std::vector<const Node*>& MemoryOrder::find(const Edges& edges, const Node& node) {
    static const std::vector<const Node*> none;
    const auto found = edges.find(index(node.id()));
    return found == edges.end() ? none : found->second;
}

void MemoryOrder::add(const Node& first, const Node& then) {
    auto& before = m_before[index(then.id())];
    if (&first == &then || std::find(before.begin(), before.end(), &first) != before.end()) return;
    before.push_back(&first);
    m_after[index(first.id())].push_back(&then);
}

MemoryOrder::MemoryOrder(const Graph& graph) {
    for (const auto& [finder, reader] : foundSizes(graph)) add(*finder, *reader);
    const StorageRoots roots(graph);
    std::unordered_set<uint32_t> written;
    for (const Node& node : graph.nodes())
        for (const Node* target : writtenOperands(node)) written.insert(index(roots.rootOf(*target)));
    if (written.empty()) return;
    std::unordered_map<uint32_t, Traffic> traffic;
    for (const Node& node : graph.nodes()) {
        if (onlyNamesMemory(node)) continue;
        const std::vector<const Node*> targets = writtenOperands(node);
        node.forEachInput([&](const Node* input) {
            const uint32_t root = index(roots.rootOf(*input));
            if (!written.contains(root)) return;
            Traffic& here = traffic[root];
            if (here.write) add(*here.write, node);
            here.readers.push_back(&node);
        });
        for (const Node* target : targets) {
            Traffic& here = traffic[index(roots.rootOf(*target))];
            for (const Node* reader : here.readers) add(*reader, node);
            here = {&node, {}};
        }
    }
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
