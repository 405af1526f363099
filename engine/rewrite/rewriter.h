#pragma once
// Every edit of a pass goes through here and costs fuel. A pass asks before each rewrite, and edits that must happen
// together are one rewrite, so that the graph verifies after any amount of fuel. Stepping into a pass is running it
// again with less fuel; finding the rewrite that broke a graph is a binary search on fuel.
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/trace.h"
#include "engine/ir/module.h"
#include "engine/ops/build.h"
#include "engine/rewrite/pass_context.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// What a pass may do with a rewrite that it has found.
enum class Go : uint8_t {
    Yes,   // make it
    Skip,  // the rule is switched off: go on with other rules
    Stop,  // out of fuel or cancelled: make no more rewrites
};

/// What a pass says of a node that one of its rules leaves alone.
struct Refusal {
    std::string rule;
    std::string why;                // a sentence without its full stop
    NodeId because = NodeId::None;  // the node that the sentence is about
};

class Rewriter {
  public:
    /// `fuel`: how many rewrites may happen; none = any number. What is referred to outlives the rewriter.
    Rewriter(std::string_view pass, PassContext context, std::optional<int64_t> fuel = {},
             const CancelToken* cancel = nullptr)
        : m_pass(pass), m_context(std::move(context)), m_fuel(fuel), m_cancel(cancel) {}

    /// Asks for one rewrite named `rule` that starts from `node`. After Go::Yes the edit must follow; after anything
    /// else the graph stays as it is. `why` is the rule's reason, shown to the user.
    Go begin(std::string_view rule, const Node& node, std::string_view why = {});
    /// Whether the user switched the rule off, by name or as "pass/rule"; for rules that cost something to look for.
    bool disabled(std::string_view rule) const;
    /// For rules that must edit to find out whether they apply: spends one fuel after the edit. The pass must ask
    /// outOfFuel() and cancelled() before. `graph` is the node's.
    void record(std::string_view rule, const Graph& graph, std::string_view nodeName, NodeId node,
                std::string_view why = {});

    /// Says which condition of `rule` failed at `node`, for a user who asks. Check conditions in an order that a reader
    /// can follow, and say the first that fails. `because`: the node that the sentence is about, if another. Returns
    /// false, so that a check can end with it. Costs nothing unless the node is watched.
    bool refuse(std::string_view rule, const Node& node, std::string_view why, const Node* because = nullptr) {
        if (watches(node)) noteRefusal(rule, why, because ? because->id() : node.id());
        return false;
    }
    /// Whether anybody will read a refusal at this node, so that it is worth composing.
    bool watches(const Node& node) const {
        return m_watched != nullptr && node.id() == m_watchedNode && &node.graph() == m_watched;
    }
    /// From now on the first refusal of each rule at this node is kept.
    void watch(const Graph& graph, NodeId node) {
        m_watched = &graph;
        m_watchedNode = node;
    }
    const std::vector<Refusal>& refusals() const { return m_refusals; }

    /// What is made of the node came from it, and if the pass made the node itself, from what it made that of, too: the
    /// graph before the pass has only the latter.
    std::vector<NodeId> originsOf(const Node& node) const;
    /// A builder that inserts before `position`; what it creates says that it came from `origin`.
    GraphBuilder builder(Graph& graph, Node* position, const Node& origin) const;
    /// Every reader of `old` reads `replacement`, and `old` is erased. If the layout differs, types that depend on it
    /// are inferred again; what needs the old layout reads a copy in it.
    void replace(Node& old, Node& replacement);
    /// The same for a call whose value is a tuple: its getitem readers read values[i]. Error if one of them reads a
    /// result that was not made (null) or the tuple is used as a whole.
    Result<void> replaceTuple(Node& old, const std::vector<Node*>& values);
    /// Erases the node, which has no users, and then every operand that lost its last user by it, as long as they are
    /// pure calls.
    void eraseDead(Node& node);

    /// One sweep with a table of rules: calls last to first as they stand at the beginning (what the sweep makes is not
    /// visited), at each call the rules in table order. One fuel per rewrite. The result is true if anything changed.
    /// Errors: a rule whose replacement does not type.
    Result<bool> applyRules(Graph& graph, const RuleSet& rules);
    /// The same for a table that lives as long as the program.
    Result<bool> applyRules(Graph& graph, std::span<const Rule> table);
    /// Subgraphs first, in the order of the module.
    Result<bool> applyRules(Module& module, std::span<const Rule> table);
    const std::vector<RuleStats>& ruleStats() const { return m_ruleStats; }

    std::string_view pass() const { return m_pass; }
    const CompileRequest& request() const { return m_context.request(); }
    const PassContext& context() const { return m_context; }
    bool cancelled() const { return m_cancel && m_cancel->cancelled(); }
    bool outOfFuel() const { return m_fuel && static_cast<int64_t>(m_done.size()) >= *m_fuel; }
    bool changed() const { return !m_done.empty(); }
    const std::vector<RewriteInfo>& done() const { return m_done; }
    /// Tells which graph is which body, for RewriteInfo::body: before the pass, and again for graphs that it made.
    void setBodyPaths(const Module& module);

  private:
    RuleStats& statsOf(std::string_view rule);
    void noteRefusal(std::string_view rule, std::string_view why, NodeId because);

    std::string_view m_pass;
    PassContext m_context;
    std::optional<int64_t> m_fuel;
    const CancelToken* m_cancel;
    std::vector<RewriteInfo> m_done;
    std::vector<const Graph*> m_unknown;  // of each in m_done the graph, where it was not a known body; else null
    std::map<const Graph*, std::string> m_bodies;
    std::map<const Graph*, uint32_t> m_idsBefore;  // of a known body one past the last id before the pass
    const Graph* m_watched = nullptr;
    NodeId m_watchedNode = NodeId::None;
    std::vector<Refusal> m_refusals;
    std::vector<RuleStats> m_ruleStats;  // in the order in which the rules were first tried
};

/// A call that may be removed when nobody reads it: no mutation, no assertion, no effect.
bool isPure(const Node& node);

}  // namespace cutaway
