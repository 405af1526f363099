#pragma once
// Evaluates nodes as expressions: what is the element of this value at this index? Values that the caller wants
// computed in the kernel are replaced by formulas over their operands (the ops' lowering rules); all others become
// Loads.
#include <functional>
#include <set>

#include "engine/loops/index.h"
#include "engine/loops/reduction_axes.h"
#include "engine/schedule/program.h"

namespace cutaway {

/// What a lowering rule turned out to do, and what computing one element costs, in units of an addition.
struct RuleFacts {
    bool lowers = false;
    std::string whyNot;  // "aten.sort.default has no lowering rule"
    bool reduces = false;
    bool loads = false;    // reads at least one tensor
    bool checks = false;   // an index or a divisor comes from data, and the run fails where it is a wrong one
    bool divides = false;  // a divisor of integers comes from data: all elements must be computed, even if few are read
    int cost = 0;
    SymDims spaceSizes;         // the result's; of reductions over whole dims the operand's ...
    std::vector<bool> reduced;  // ... and which of them the rule reduces; of other reductions result and box sizes
};

/// A sentence that may be about a node, whose name it holds.
struct NamedProblem {
    std::string text;  // before the name
    const Node* node = nullptr;
    std::string rest;  // after it
    bool empty() const { return text.empty() && rest.empty(); }
    std::string sentence() const { return text + (node ? node->name() : std::string()) + rest; }
};

class Lowering {
  public:
    /// True for values to be computed here rather than loaded.
    using Inlines = std::function<bool(const ValueKey&)>;
    /// `shared`: for a kernel of several nodes. `roundsHalves`: values of f16 and bf16 are rounded to it, though they
    /// are computed in f32.
    explicit Lowering(Inlines inlines, bool shared = false, bool roundsHalves = false)
        : m_inlines(std::move(inlines)), m_shared(shared), m_roundsHalves(roundsHalves) {}

    /// Adds a loop of this size. Returns its axis, or the index 0 if it has one step. All loops come before any value.
    Expr loop(const SymInt& size);
    /// The element at `at`, in its compute dtype (f16 and bf16 as f32).
    Expr value(const Node& node, const std::vector<Expr>& at);
    Expr value(const ValueKey& key, const std::vector<Expr>& at);
    /// Row-major position by the strides of a type.
    Expr address(const TensorType& type, const std::vector<Expr>& at, const SymInt& offset);
    IndexSimplifier& indices() { return m_indices; }
    /// Why the expressions made so far cannot be used; empty if they can.
    const NamedProblem& problem() const { return m_problem; }
    /// Values read as Loads so far.
    const std::set<ValueKey>& loaded() const { return m_loaded; }

  private:
    friend class NodeContext;
    Expr rule(const Node& node, size_t result, const std::vector<Expr>& at);
    Expr load(const ValueKey& root, const TensorType& type, const SymInt& offset, const std::vector<Expr>& at);
    /// A size may hold loads (rows of different lengths); nothing is known of it then but that it bounds the axis.
    Expr reduce(ReduceKind kind, const SymDims& sizes, const LowerContext::Body& body);
    Expr axis(int number, const SymInt& size);
    /// The first failure counts.
    void fail(const Node& node, std::string why) {
        if (m_problem.empty()) m_problem = {{}, &node, std::move(why)};
    }

    Inlines m_inlines;
    bool m_shared, m_roundsHalves;
    IndexSimplifier m_indices;
    NamedProblem m_problem;
    std::set<ValueKey> m_loaded;
    std::vector<Expr> m_guards;
    std::unordered_map<uint64_t, std::vector<std::pair<std::vector<Expr>, Expr>>> m_memo;
    int m_loops = 0, m_temporaries = 0;
    std::optional<ReductionAxes> m_axes;
};

/// What tests ask for of an operator at this place ("kernel", "fusion", "reuse"): 1 + 2 |value|, or NaN.
Expr spoiled(const Expr& value, std::string_view place, const Op& op);
/// The results of a call that somebody reads; all if nobody does.
std::vector<size_t> readResults(const Node& node);
/// Tries the rule of a call with all operands loaded, for the target's kernels.
RuleFacts probe(const Node& node, const TargetInfo& target);
/// Cost of computing an expression once, shared parts counted once, loads as 1; bodies of reductions count once.
int costOf(const Expr& expr);

}  // namespace cutaway
