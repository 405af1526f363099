#pragma once
// Finds a rule's pattern at a node, and says why when it is not there. Matching edits nothing; Rewriter::applyRules
// (apply_rules.cpp) does. Strict is the default: what a rule writes as a constant or binds twice is compared on the
// real graph.
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rewrite/pass_context.h"
#include "engine/rewrite/pattern.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// A rule with its texts read.
struct CompiledRule {
    CompiledRule(const Rule& source, Pattern found, PatternText made)
        : rule(&source), pattern(std::move(found)), replacement(std::move(made)) {}
    const Rule* rule;
    Pattern pattern;
    PatternText replacement;  // empty when the rule has a function
};

/// What the names of a pattern stand for. Borrows the graph; valid until it is edited.
class Match {
  public:
    Match(const CompiledRule& rule, const PassContext& context)
        : m_rule(rule.rule), m_pattern(&rule.pattern), m_context(&context), m_bound(rule.pattern.names.size()) {}
    Match(const Match&) = delete;
    Match& operator=(const Match&) = delete;

    /// The value or constant of a name of `find`; it is a bug to ask for a name that `find` does not have.
    const Argument& operator[](std::string_view name) const;
    bool isNode(std::string_view name) const { return (*this)[name].node() != nullptr; }
    bool isTensor(std::string_view name) const;
    /// It is a bug to ask for the node of a constant, or for the type of what is not a tensor.
    Node& node(std::string_view name) const;
    const TensorType& tensor(std::string_view name) const;
    /// The first result: where matching started. A name that is marked 'repeated' stands for the list of it and its
    /// siblings.
    Node& root() const;
    /// The nodes to be replaced: the results, or the single result and its siblings, in graph order.
    std::vector<Node*> results() const;
    /// The calls of the pattern, operands before readers, each once.
    std::vector<Node*> nodes() const;
    const Rule& rule() const { return *m_rule; }
    const Pattern& pattern() const { return *m_pattern; }
    const CompileRequest& request() const { return m_context->request(); }
    const PassContext& context() const { return *m_context; }
    bool parity() const { return request().parity; }
    /// For conditions: a sentence with what they found out, added to the reason that the step or the refusal shows. (A
    /// refusal names values as "{x}" and their types as "{x:type}"; a note is taken as it is.) The last note counts.
    void note(std::string sentence) const { m_note = std::move(sentence); }
    const std::string& note() const { return m_note; }
    /// The pattern fits, but the rule's condition does not hold.
    bool refused() const { return m_refused; }

  private:
    friend class Matcher;
    const Rule* m_rule;
    const Pattern* m_pattern;
    const PassContext* m_context;
    std::vector<const Argument*> m_bound;  // by slot; null = not bound yet
    mutable std::string m_note;
    bool m_refused = false;
    Node* m_root = nullptr;
    std::vector<std::pair<int, Node*>>
        m_items;                        // matches of calls that stand for items of a list or for siblings, by slot
    std::forward_list<Argument> m_own;  // roots, results and lists that no node's argument holds
};

/// Mutations divide a graph into regions, numbered here; a match must lie within one region (spec: pattern-matcher §6).
/// Nodes made later belong to the region of the node before them.
class MutationRegions {
  public:
    explicit MutationRegions(const Graph& graph);
    uint32_t regionOf(const Node& node) const;

  private:
    bool m_mutates = false;
    std::vector<uint32_t> m_region;
};

/// The first condition that failed in the attempt that got furthest. Collected only when explaining.
struct MatchTrace {
    int progress = -1;
    std::string reason;
    NodeId node = NodeId::None;
};

/// Matches the rule at `root`, its condition included. If false, `match` means nothing.
bool matchRule(const CompiledRule& rule, Node& root, const MutationRegions& regions, Match& match,
               MatchTrace* trace = nullptr);

struct Explanation {
    bool matched = false;
    std::string reason;         // a sentence; empty when matched
    std::vector<NodeId> nodes;  // the matched ones, or the one that the sentence is about
};

/// Matches again, with reasons: "needs `m` to be read only here, but `mul_3` reads it too".
Explanation explainRule(const Rule& rule, Node& node, const PassContext& context = CompileRequest());

/// Applies a rule at one node; the empty sentence, or why nothing was done. Errors: a replacement that does not type.
Result<std::string> applyRuleAt(const Rule& rule, Node& node, const PassContext& context = CompileRequest());

/// Values that no rule may touch because of their type (spec: pattern-matcher P-2): complex, meta, sparse.
bool hasUnsupportedType(const Node& node);

}  // namespace cutaway
