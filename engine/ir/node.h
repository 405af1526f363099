#pragma once
// A node of a graph: a placeholder, a read attribute, a call, or the output.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/types.h"
#include "engine/ir/argument.h"
#include "engine/ir/op.h"
#include "engine/ir/type.h"
#include "engine/support/hash.h"

namespace cutaway {

class Graph;

enum class NodeKind : uint8_t { Placeholder, GetAttr, Call, Output };

/// One earlier form of a node, before the file was written: what it was called there and what made it.
struct SourceStep {
    std::string name, pass, action;
};

/// Where a node came from. Typed, because passes and windows rely on it; shared text is stored once.
struct Provenance {
    std::vector<NodeId> origin;                     // nodes this one replaces or was made from
    std::shared_ptr<const std::string> stackTrace;  // Python frames, innermost last: 'File "p", line n, in f\n code'
    std::shared_ptr<const std::string> modulePath;  // "encoder.layer.0"
    std::shared_ptr<const std::string> moduleType;  // "torch.nn.modules.linear.Linear"
    std::shared_ptr<const std::vector<SourceStep>> history;  // newest first; null if the file says nothing
    std::string sourceName;                                  // the node's name in the file it was read from
    std::string createdBy;                                   // pass or rule; empty for imported nodes
    bool backward = false;                                   // computed by differentiation
    int8_t recompute = 0;  // 1 prefer, 2 must be computed again in the backward; -1 must save
    int32_t region = 0;    // checkpointed region that it belongs to, counted from 1 (ac_graph_id + 1); 0: none
};

class Node {
  public:
    NodeId id() const { return m_id; }
    NodeKind kind() const { return m_kind; }
    bool isCall() const { return m_kind == NodeKind::Call; }
    bool isPlaceholder() const { return m_kind == NodeKind::Placeholder; }
    bool isOutput() const { return m_kind == NodeKind::Output; }
    const std::string& name() const { return m_name; }
    /// The operator of a call; calls only.
    const Op& op() const;
    /// True for a call of the op with this full name ("aten.mm.default").
    bool isCall(std::string_view opName) const { return isCall() && m_op->name() == opName; }
    bool is(Tag tag) const { return isCall() && m_op->is(tag); }

    /// Calls of known ops: one per schema parameter, defaults filled in. Opaque calls: the positional arguments as
    /// written. Output: one argument, the returned value. GetAttr and placeholders: none.
    const std::vector<Argument>& args() const { return m_args; }
    const Argument& arg(size_t position) const { return m_args[position]; }
    /// By schema parameter name; known ops only.
    const Argument& arg(std::string_view param) const;
    /// Opaque calls only: keyword arguments in written order.
    const std::vector<std::pair<std::string, Argument>>& kwargs() const { return m_kwargs; }
    /// Attribute name of a GetAttr, original parameter name of a placeholder.
    const std::string& target() const { return m_target; }

    const ValueType& type() const { return *m_type; }
    /// The tensor type; asking a node without one is a bug.
    const TensorType& tensor() const;

    /// Nodes that read this one, each once, in the order in which they began to.
    const std::vector<Node*>& users() const { return m_users; }
    bool hasUsers() const { return !m_users.empty(); }
    /// The nodes among the arguments, each once, in order of appearance.
    std::vector<Node*> inputs() const;
    /// Calls visit(Node*) for each node among the arguments, repeats included.
    template <class Visit>
    void forEachInput(Visit&& visit) const {
        for (const Argument& arg : m_args) arg.forEachNode(visit);
        for (const auto& [key, arg] : m_kwargs) arg.forEachNode(visit);
    }

    const Provenance& provenance() const { return *m_provenance; }
    /// Where fingerprint() keeps what it found out about this node; every edit forgets it.
    CachedHash& contentHash() const { return m_contentHash; }
    Node* next() const { return m_next; }
    Node* previous() const { return m_previous; }
    Graph& graph() const { return *m_graph; }

  private:
    friend class Graph;
    /// A node without arguments and users, which the graph fills in.
    Node(Graph& graph, NodeKind kind);
    /// The same of another node.
    Node(Graph& graph, const Node& other);

    Graph* m_graph = nullptr;
    NodeId m_id = NodeId::None;
    NodeKind m_kind = NodeKind::Call;
    const Op* m_op = nullptr;
    std::string m_name, m_target;
    std::vector<Argument> m_args;
    std::vector<std::pair<std::string, Argument>> m_kwargs;
    std::shared_ptr<const ValueType> m_type;  // shared by the copies of the node, like its provenance; never null
    std::vector<Node*> m_users;
    std::shared_ptr<const Provenance> m_provenance;
    mutable CachedHash m_contentHash;
    Node *m_next = nullptr, *m_previous = nullptr;
    mutable uint64_t m_order = 0;
};

}  // namespace cutaway
