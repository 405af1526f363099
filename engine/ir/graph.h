#pragma once
// The mutable program: nodes in execution order. Owns its nodes; keeps users, names and ids consistent. Passes edit it
// only after Rewriter::begin (engine/rewrite/rewriter.h) has let them.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ir/name_table.h"
#include "engine/ir/node.h"
#include "engine/ir/node_slots.h"

namespace cutaway {

class Graph {
  public:
    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    Graph(Graph&&) = delete;

    /// Same ids, names, order, provenance.
    std::unique_ptr<Graph> clone() const;

    // -- creating; `before` null = at the end. The name is made unique from the hint ("mul" -> "mul_3").
    Node& placeholder(std::string_view name, ValueType type, Node* before = nullptr);
    Node& getAttr(std::string_view target, ValueType type, Node* before = nullptr, std::string_view name = {});
    /// `args` bound to the schema (see bindArguments in ops/build.h) or, for an opaque op, as written.
    Node& call(const Op& op, std::vector<Argument> args, ValueType type, Node* before = nullptr,
               std::string_view name = {}, std::vector<std::pair<std::string, Argument>> kwargs = {});
    Node& output(Argument value);
    /// A node of another graph at the end of this one, with its provenance, its id, which must be free here, and its
    /// name if that is free. The nodes that it reads are here already, under their ids.
    Node& take(const Node& other);
    /// A value of another graph as an input of this one, with its id and name.
    Node& takeAsInput(const Node& other);
    /// A copy of another graph's node under this id, which must be free. It reads nothing yet: setOp says what.
    Node& takeAs(const Node& other, NodeId id);

    // -- editing
    void setArg(Node& node, size_t position, Argument value);
    void setArgs(Node& node, std::vector<Argument> args);
    /// `kwargs`: of an opaque op.
    void setOp(Node& node, const Op& op, std::vector<Argument> args, ValueType type,
               std::vector<std::pair<std::string, Argument>> kwargs = {});
    void setType(Node& node, ValueType type);
    /// Copies of a node share where it came from, so that is replaced, not edited.
    void setProvenance(Node& node, std::shared_ptr<const Provenance> provenance);
    void setProvenance(Node& node, Provenance provenance) {
        setProvenance(node, std::make_shared<const Provenance>(std::move(provenance)));
    }
    /// Gives the node this name if free, else a numbered one.
    void rename(Node& node, std::string_view name);
    /// The same for a placeholder whose parameter in printed signatures shall be called so too.
    void renameParameter(Node& placeholder, std::string_view name);
    /// Every user of `old` reads `replacement` instead, except users for which `keep` is true. `keep` does not look at
    /// the users of `old`.
    template <class Keep>
    void replaceUses(Node& old, Node& replacement, Keep&& keep) {
        if (&old == &replacement) return;
        std::vector<Node*> kept;
        const std::vector<Node*> users = std::move(old.m_users);
        old.m_users.clear();
        for (Node* user : users) {
            if (user == &replacement || keep(*user)) kept.push_back(user);
            else exchangeInput(*user, old, replacement);
        }
        old.m_users = std::move(kept);
    }
    void replaceUses(Node& old, Node& replacement) {
        replaceUses(old, replacement, [](const Node&) { return false; });
    }
    void replaceInput(Node& user, Node& old, Node& replacement);
    /// The node must have no users. Its id is never used again.
    void erase(Node& node);
    void moveBefore(Node& node, Node& position);

    // -- reading
    Node* find(NodeId id) const { return m_slots.find(id); }
    Node* findByName(std::string_view name) const;
    Node* first() const { return m_first; }
    Node* last() const { return m_last; }
    size_t size() const { return m_size; }
    /// One past the largest id ever given.
    uint32_t idLimit() const { return m_slots.limit(); }
    /// Makes the next new node's id at least this (ids stay unique across the graphs of one run).
    void reserveIds(uint32_t limit);
    Node* outputNode() const { return m_output; }
    std::vector<Node*> placeholders() const;
    /// The values that the output node returns, flattened to its top-level items.
    std::vector<Argument> outputs() const;
    bool isBefore(const Node& a, const Node& b) const;
    /// Grows with every edit, undone ones included. Equal numbers of a graph: nothing has been touched in between.
    uint64_t edits() const { return m_edits; }

    class Iterator {
      public:
        using value_type = Node;
        using difference_type = std::ptrdiff_t;
        explicit Iterator(Node* node = nullptr) : m_node(node) {}
        Node& operator*() const { return *m_node; }
        Iterator& operator++() {
            m_node = m_node->next();
            return *this;
        }
        Iterator operator++(int) {
            Iterator old = *this;
            ++*this;
            return old;
        }
        bool operator==(const Iterator&) const = default;

      private:
        Node* m_node;
    };
    struct Range {
        Iterator m_begin;
        Iterator begin() const { return m_begin; }
        Iterator end() const { return Iterator(); }
    };
    /// In execution order. Erasing the current node while iterating needs nodeList() instead.
    Range nodes() const { return {Iterator(m_first)}; }
    /// A copy of the order, for loops that erase or insert.
    std::vector<Node*> nodeList() const;

  private:
    std::unique_ptr<Node> make(NodeKind kind);
    Node& insert(std::unique_ptr<Node> node, Node* before, std::string_view nameHint);
    Node& append(std::unique_ptr<Node> node);
    void touch(Node& node);
    /// The arguments read `replacement` instead of `old`, which still lists the user.
    void exchangeInput(Node& user, Node& old, Node& replacement);
    void link(Node& node, Node* before);
    void unlink(Node& node);
    void addUses(Node& node);
    void dropUses(Node& node);
    std::string uniqueName(std::string_view hint);
    NodeId idOfName(std::string_view name) const;
    void renumber() const;

    NodeSlots m_slots;
    Node *m_first = nullptr, *m_last = nullptr, *m_output = nullptr;
    size_t m_size = 0;
    NameTable m_names;
    std::unordered_map<std::string, int> m_nextSuffix;
    uint64_t m_edits = 0;
    mutable bool m_orderDirty = false;
};

}  // namespace cutaway
