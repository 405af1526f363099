#pragma once
// Rules: rewrites written as data. A table of rules is applied by Rewriter::applyRules, explained by explainRule
// (matcher.h), printed and loaded as text (below).
//
// `find` and `replace` are FX text, statements separated by ';' or newlines, ending in `return`:
//   name                the value of an earlier statement, else a free name that stands for any value; a name that
//                       stands twice is the same value both times
//   $d                  any constant (no value of the graph inside); in `replace` what it stood for
//   1, 0.5, None, torch.float32, 'tanh', [0, 1], device(type='cpu')     equal constants (1, 1.0 and True are equal)
//   _                   anything
//   [a, *xs]            a list that begins with a; xs is the list of the others
//   s[0]                operator.getitem(s, 0)
//   aten.(add|sub).Tensor(...)   a choice; also of overloads, and of functions: (torch.relu|torch.tanh)(...)
//   aten.add(x, y)      any overload that takes these arguments
//   torch.relu(x), x.view(2, 3), x + y, x[:, 0], x.T
//                       calls as Python writes them, each another call; they match what stands in a graph before
//                       capture. Arguments are compared by parameter: position, keyword and default are one
//   f(x, ...)           arguments that are not written may be anything; without the dots they must be the defaults
//   m: shared = ...     m may have readers outside the match; every other inner value must not
//   m: 2 readers = ...  m has exactly that many readers, wherever they are
//   p: each = s[_]      with [*p]: a list of one or more such calls. Calls nested in it are each item's own; other
//                       names mean one value for all items; *p in `replace` is the list
//   p: some = ...       the same, but other items are passed over; *p is the list of those that match
//   p: repeated = ...   the only result: the call and all its siblings (calls of its op that read a value it reads),
//                       all of which must match
//   a != b              two different values; stands in place of a statement
//   return a, b         several results; matching starts at the first, the others share values with it
// Commutative ops try both orders of their operands. Calls nest: f(g(x)) is m = g(x); f(m).
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/request.h"
#include "engine/ops/build.h"

namespace cutaway {

class Match;
struct CompiledRule;

struct Rule {
    std::string_view name;
    std::string_view find;
    /// What replaces the results that were found, as text; or a function that builds it before the first of them. A
    /// function may decline (Values::notHandled) as long as it has built nothing.
    std::string_view replace;
    Values (*build)(const Match& match, GraphBuilder& builder) = nullptr;
    /// The sentence that says why the rule does not apply here, empty if it does. "{x}" in it is printed as the name
    /// of the node that `x` of `find` stands for.
    std::string_view (*unless)(const Match& match) = nullptr;
    std::string_view why;
    /// The replacement may have another dtype, device or shape; without this, such a change is a bug.
    bool changesType = false;
    /// PyTorch registers the pattern with both orders of its commutative calls. Without this, parity tries only the
    /// order as written.
    bool eitherOrder = false;
    /// PyTorch counts a match before it checks what `unless` checks (spec: passes H-12), so refused matches count, too.
    bool countsRefused = false;
    /// For functions that serve several rules; they ask Match::rule() for it.
    const void* context = nullptr;
    /// Of users' rules: the custom pass that they run in (UserPass in cutaway/request.h); empty: joint_custom_pre_pass.
    std::string_view place;
    /// Of users' rules, instead of `find` and `replace`: formulas over `parameters` ("x f32[2, 3]; ...") that are
    /// traced; `search` on the types given there, `example` on the types of what was found (passes/user_passes.h).
    std::string_view parameters, search, example;
    Releases releases = {};  // of PyTorch, those that have it
    bool training = false;   // `search` is found with its gradients, too
};

/// Rules ready for matching: texts parsed, calls bound to schemas, looked up by the op of their first result.
/// Borrows the rules. Immutable, so threads may share it.
class RuleSet {
  public:
    RuleSet(RuleSet&&) noexcept;
    RuleSet& operator=(RuleSet&&) noexcept;
    ~RuleSet();

    /// Errors: text that does not parse, an op without a row, a name of `replace` that `find` does not bind, two rules
    /// of one name, or of one pattern (up to names) and the same condition. The rule is in `where`.
    static Result<RuleSet> compile(std::span<const Rule> rules);

    /// The same, but leaves out broken rules and keeps their errors in broken().
    static RuleSet compileWorking(std::span<const Rule> rules);
    const std::vector<Error>& broken() const;

    size_t size() const;
    const CompiledRule& at(size_t position) const;
    /// Positions of the rules that may begin at a call of this op, in table order.
    std::span<const uint32_t> startingAt(const Op& op) const;

  private:
    RuleSet();
    struct Data;
    std::unique_ptr<Data> m_data;
};

/// A table that lives as long as the program, compiled once. Broken rules never match; tests check that no table has
/// any.
const RuleSet& compiledRules(std::span<const Rule> table);

/// Rules read from text, with the storage of their strings.
struct LoadedRules {
    std::deque<std::string> texts;
    std::vector<Rule> rules;
};

/// Several tables as one, in this order; for a static variable.
std::vector<Rule> joinRules(std::initializer_list<std::span<const Rule>> tables);

/// A rule's text with every statement on a line of its own.
std::string statementLines(std::string_view text);

/// One block per rule: "rule NAME", "why SENTENCE", "find" and its statements, "replace" and its statements; "unless
/// (code)" and "build (code)" where a function stands; of users' rules also "place PLACE", "parameters X TYPE; ...",
/// "search" or "replace_by_example" and their statements, "training". loadRules reads it back.
std::string printRules(std::span<const Rule> rules);
/// `builtIn` gives the functions of rules of the same name that say "(code)". Errors have the line in `where`.
Result<LoadedRules> loadRules(std::string_view text, std::span<const Rule> builtIn = {});

/// What a rule did in a run.
struct RuleStats {
    std::string_view rule;
    int64_t tried = 0;  // nodes at which matching was attempted
    int64_t applied = 0;
    double seconds = 0;   // matching and building
    int64_t counted = 0;  // applied, and refused where Rule::countsRefused
};

}  // namespace cutaway
