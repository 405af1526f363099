#include "engine/rewrite/rewriter.h"

#include "engine/support/check.h"

namespace cutaway {

bool isPure(const Node& node) {
    if (node.kind() == NodeKind::GetAttr) return true;
    return node.isCall() && !node.op().mutates() && !node.is(Tag::Impure);
}

bool Rewriter::begin(std::string_view rule, const Node& node, std::string_view why) {
    if (outOfFuel() || cancelled()) return false;
    record(rule, node.name(), node.id(), why);
    return true;
}

void Rewriter::record(std::string_view rule, std::string_view nodeName, NodeId node, std::string_view why) {
    RewriteInfo info;
    info.index = static_cast<int>(m_done.size());
    info.rule = std::string(rule);
    info.why = std::string(why);
    info.node = std::string(nodeName);
    info.nodeId = node;
    m_done.push_back(std::move(info));
}

GraphBuilder Rewriter::builder(Graph& graph, Node* position, const Node& origin) const {
    GraphBuilder builder(graph, position);
    Provenance provenance = origin.provenance();
    provenance.origin = {origin.id()};
    provenance.sourceName.clear();
    provenance.createdBy = std::string(m_pass);
    builder.setProvenance(std::move(provenance));
    return builder;
}

void Rewriter::replace(Node& old, Node& replacement) {
    Graph& graph = old.graph();
    graph.replaceUses(old, replacement);
    CT_CHECK(!old.hasUsers(), "a replacement does not read what it replaces");
    graph.erase(old);
}

Result<void> Rewriter::replaceTuple(Node& old, const std::vector<Node*>& values) {
    Graph& graph = old.graph();
    const std::vector<Node*> readers = old.users();
    for (Node* reader : readers) {
        if (!reader->isCall("operator.getitem"))
            return invalidInput(old.op().name() + ": the tuple is used as a whole by '" + reader->name() + "'", old.name());
        const auto position = reader->arg(1).asInt();
        const size_t item = position ? static_cast<size_t>(*position < 0 ? *position + static_cast<int64_t>(values.size()) : *position) : values.size();
        if (item >= values.size() || values[item] == nullptr) {
            if (!reader->hasUsers()) {
                graph.erase(*reader);
                continue;
            }
            return unsupported(old.op().name() + ": result " + std::to_string(item) + " is used, but its expansion does not make it", reader->name());
        }
        replace(*reader, *values[item]);
    }
    graph.erase(old);
    return {};
}

void Rewriter::eraseDead(Node& node) {
    std::vector<Node*> pending = {&node};
    Graph& graph = node.graph();
    while (!pending.empty()) {
        Node* next = pending.back();
        pending.pop_back();
        const std::vector<Node*> inputs = next->inputs();
        graph.erase(*next);
        for (Node* input : inputs)
            if (!input->hasUsers() && isPure(*input) && std::find(pending.begin(), pending.end(), input) == pending.end())
                pending.push_back(input);
    }
}

}  // namespace cutaway
