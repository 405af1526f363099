#include "engine/rewrite/rewriter.h"

#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/ops/infer_rules.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/rewrite_watch.h"
#include "engine/support/check.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// Types everything that reads `source`, directly or not, anew. False if a reader does not accept its operands as they
/// are now (a view of what is no longer contiguous), or if a layout would change that somebody reads by position and
/// `keepRead`; then all types are as they were.
bool tryRetypeReaders(Graph& graph, Node& source, bool keepRead) {
    std::vector<std::pair<Node*, ValueType>> before;
    ReaderQueue queue(graph);
    queue.addReadersOf(source);
    while (Node* node = queue.next()) {
        if (!node->isCall() || node->op().isOpaque()) continue;
        auto type = inferCall(node->op(), node->args());
        if (!type || (keepRead && !type->isOpaque() && !sameMemory(*type, node->type()) && storageIsRead(*node))) {
            for (auto& [retyped, old] : before) graph.setType(*retyped, std::move(old));
            return false;
        }
        if (type->isOpaque() || sameMemory(*type, node->type())) continue;
        before.emplace_back(node, node->type());
        graph.setType(*node, std::move(*type));
        queue.addReadersOf(*node);
    }
    return true;
}

}  // namespace

bool isPure(const Node& node) {
    if (node.kind() == NodeKind::GetAttr) return true;
    return node.isCall() && !node.op().mutates() && !node.is(Tag::Impure);
}

Go Rewriter::begin(std::string_view rule, const Node& node, std::string_view why) {
    if (outOfFuel() || cancelled()) return Go::Stop;
    if (disabled(rule)) return Go::Skip;
    record(rule, node.graph(), node.name(), node.id(), why);
    return Go::Yes;
}

bool Rewriter::disabled(std::string_view rule) const {
    const auto& names = request().disabledPasses;
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return name == rule || (name.size() == m_pass.size() + 1 + rule.size() && name.starts_with(m_pass) &&
                                name[m_pass.size()] == '/' && name.ends_with(rule));
    });
}

void Rewriter::record(std::string_view rule, const Graph& graph, std::string_view nodeName, NodeId node,
                      std::string_view why) {
    RewriteInfo info;
    info.index = static_cast<int>(m_done.size());
    info.rule = std::string(rule);
    info.why = std::string(why);
    info.node = std::string(nodeName);
    info.nodeId = node;
    const auto found = m_bodies.find(&graph);
    if (found != m_bodies.end()) info.body = found->second;
    m_unknown.push_back(found == m_bodies.end() ? &graph : nullptr);
    m_done.push_back(std::move(info));
    if (const RewriteWatch* watch = RewriteWatch::current()) watch->rewrite(m_pass, m_done.back());
    faultPoint("rule", rule, m_pass);
}

void Rewriter::setBodyPaths(const Module& module) {
    const bool first = m_idsBefore.empty();
    const auto know = [&](const auto& self, const Module& at, const std::string& path) -> void {
        m_bodies[&at.graph()] = path;
        if (first) m_idsBefore[&at.graph()] = at.graph().idLimit();
        for (const auto& [name, body] : at.subgraphs) self(self, *body, path.empty() ? name : path + "/" + name);
    };
    know(know, module, "");
    for (size_t i = 0; i < m_done.size(); ++i)
        if (const auto found = m_bodies.find(m_unknown[i]); m_unknown[i] && found != m_bodies.end())
            m_done[i].body = found->second;
}

void Rewriter::noteRefusal(std::string_view rule, std::string_view why, NodeId because) {
    if (std::any_of(m_refusals.begin(), m_refusals.end(), [&](const Refusal& said) { return said.rule == rule; }))
        return;
    m_refusals.push_back({std::string(rule), std::string(why), because});
}

std::vector<NodeId> Rewriter::originsOf(const Node& node) const {
    std::vector<NodeId> origins = {node.id()};
    const auto found = m_idsBefore.find(&node.graph());
    const auto wasThere = [&](NodeId id) { return static_cast<uint32_t>(id) < found->second; };
    if (found != m_idsBefore.end() && !wasThere(node.id()))
        std::copy_if(node.provenance().origin.begin(), node.provenance().origin.end(), std::back_inserter(origins),
                     wasThere);
    return origins;
}

GraphBuilder Rewriter::builder(Graph& graph, Node* position, const Node& origin) const {
    GraphBuilder builder(graph, position);
    builder.setRelease(request().pytorch);
    Provenance provenance = origin.provenance();
    provenance.origin = originsOf(origin);
    provenance.sourceName.clear();
    provenance.createdBy = std::string(m_pass);
    builder.setProvenance(std::move(provenance));
    return builder;
}

void Rewriter::replace(Node& old, Node& replacement) {
    Graph& graph = old.graph();
    const ValueType type = old.type();
    const std::vector<Node*> readers = old.users();
    const bool keepRead = !request().parity;
    const bool read =
        keepRead && !sameMemory(type, replacement.type()) && &storageRoot(old) == &old && storageIsRead(old);
    Provenance provenance = old.provenance();
    provenance.origin = originsOf(old);
    provenance.createdBy = std::string(m_pass);
    graph.replaceUses(old, replacement);
    CT_CHECK(!old.hasUsers(), "a replacement does not read what it replaces");
    graph.erase(old);
    if (readers.empty() || sameMemory(type, replacement.type()) ||
        (!read && tryRetypeReaders(graph, replacement, keepRead)) || !type.tensor())
        return;
    // A reader depends on the layout that is gone: give it back.
    GraphBuilder builder(graph, replacement.next());
    builder.setProvenance(std::move(provenance));
    Node& copy = laidOutLike(builder, replacement, *type.tensor());
    for (Node* reader : readers) graph.replaceInput(*reader, replacement, copy);
}

Result<void> Rewriter::replaceTuple(Node& old, const std::vector<Node*>& values) {
    Graph& graph = old.graph();
    const std::vector<Node*> readers = old.users();
    for (Node* reader : readers) {
        if (!reader->isCall("operator.getitem"))
            return invalidInput(old.op().name() + ": the tuple is used as a whole by '" + reader->name() + "'",
                                old.name());
        const auto position = reader->arg(1).asInt();
        const size_t item =
            position ? static_cast<size_t>(*position < 0 ? *position + static_cast<int64_t>(values.size()) : *position)
                     : values.size();
        if (item >= values.size() || values[item] == nullptr) {
            if (!reader->hasUsers()) {
                graph.erase(*reader);
                continue;
            }
            return unsupported(
                old.op().name() + ": result " + std::to_string(item) + " is used, but its expansion does not make it",
                reader->name());
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
            if (!input->hasUsers() && isPure(*input) &&
                std::find(pending.begin(), pending.end(), input) == pending.end())
                pending.push_back(input);
    }
}

}  // namespace cutaway
