#include <unordered_map>

#include "engine/loops/unique_exprs.h"
#include "engine/loops/vectorise.h"

namespace cutaway {
namespace {

constexpr int kDeepest = 12;  // operations inside each other in one statement; readers and compilers have limits

struct SharingScope {
    Body body;
    std::set<int> binds;
    std::unordered_map<const ExprNode*, Expr> known;
};

class Sharer {
  public:
    explicit Sharer(LoopNest& nest) : m_nest(&nest) {}

    void run() {
        forEachValueIn(m_nest->body, [&](Expr& e) {
            e = m_exprs.unique(e);
            count(e);
        });
        m_scopes.emplace_back();
        statements(m_nest->body);
        m_nest->body = std::move(m_scopes[0].body);
    }

  private:
    // ---- first: equal expressions are one address, and how often each is read is known
    void count(const Expr& e) {
        if (++m_uses[&*e] > 1) return;
        for (const Expr& operand : e->operands) count(operand);
    }

    // ---- then: statements again, with what is shared before them
    void statements(Body& body) {
        for (Stmt& stmt : body) {
            forEachValue(stmt, [&](Expr& e) { e = emit(e).first; });
            if (auto* loop = std::get_if<For>(&stmt.node)) inside(loop->body, {axisKey(loop->axis)});
            if (auto* branch = std::get_if<If>(&stmt.node)) inside(branch->body, {});
            SharingScope& scope = m_scopes.back();
            if (const auto* index = std::get_if<Index>(&stmt.node)) scope.binds.insert(axisKey(index->axis));
            if (const auto* let = std::get_if<Let>(&stmt.node)) scope.binds.insert(varKey(let->var));
            if (const auto* own = std::get_if<Declare>(&stmt.node)) scope.binds.insert(varKey(own->var));
            scope.body.push_back(std::move(stmt));
        }
    }
    void inside(Body& body, std::set<int> binds) {
        m_scopes.push_back({{}, std::move(binds), {}});
        statements(body);
        body = std::move(m_scopes.back().body);
        m_scopes.pop_back();
    }

    bool changes(const Expr& e) {
        for (const int leaf : m_exprs.leaves(e))
            if (leaf % 2 == 1 && m_nest->vars[static_cast<size_t>(leaf / 2)].changes) return true;
        return false;
    }
    size_t homeOf(const Expr& e) {
        const std::set<int>& leaves = m_exprs.leaves(e);
        for (size_t s = m_scopes.size() - 1; s > 0; --s)
            for (const int leaf : leaves)
                if (m_scopes[s].binds.contains(leaf)) return s;
        return 0;
    }
    static bool isLeaf(const Expr& e) { return e->operands.empty(); }

    /// (expression, operations that are left inside it).
    std::pair<Expr, int> emit(const Expr& e) {
        if (isLeaf(e) || isPlain(e)) return {e, 0};
        if (changes(e)) return rebuild(e);
        const size_t home = homeOf(e);
        if (auto found = m_scopes[home].known.find(&*e); found != m_scopes[home].known.end()) return {found->second, 0};
        if (home + 1 == m_scopes.size()) {
            auto [own, depth] = rebuild(e);
            if (m_uses[&*e] == 1 && depth < kDeepest) return {own, depth};
            return {named(e, own), 0};
        }
        // Built where all that it reads is known, and no inner loop yet.
        const auto first = m_scopes.begin() + static_cast<std::ptrdiff_t>(home) + 1;
        std::vector<SharingScope> inner(std::make_move_iterator(first), std::make_move_iterator(m_scopes.end()));
        m_scopes.resize(home + 1);
        const Expr var = named(e, rebuild(e).first);
        m_scopes.insert(m_scopes.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
        return {var, 0};
    }
    Expr named(const Expr& e, const Expr& made) {
        const int var = m_nest->newVar(e->dtype, lanesOf(*m_nest, made));
        m_scopes.back().body.push_back({Let{var, made}});
        m_scopes.back().binds.insert(varKey(var));
        m_scopes.back().known.emplace(&*e, m_nest->var(var));
        return m_nest->var(var);
    }
    /// Not worth a variable: printing them where they are read costs nothing at run time.
    static bool isPlain(const Expr& e) {
        return e->kind == ExprKind::Call && (e->name == "ramp" || e->name == "active" || e->name == "lane");
    }
    std::pair<Expr, int> rebuild(const Expr& e) {
        std::vector<Expr> operands;
        int deepest = 0;
        for (const Expr& operand : e->operands) {
            // A step Where(c, s, 0) stays in the load: printers make two loads of it (loop_nest.h).
            const bool chosenStep = e->kind == ExprKind::Load && operand->kind == ExprKind::Where && !operands.empty();
            auto [own, depth] = chosenStep ? rebuild(operand) : emit(operand);
            operands.push_back(own);
            deepest = std::max(deepest, depth);
        }
        // Without simplifying: that might give another expression than the one whose readers were counted.
        ExprNode node = *e;
        node.operands = std::move(operands);
        return {Expr(std::make_shared<const ExprNode>(std::move(node))), deepest + 1};
    }

    LoopNest* m_nest;
    UniqueExprs m_exprs;
    std::unordered_map<const ExprNode*, int> m_uses;
    std::vector<SharingScope> m_scopes;
};

}  // namespace

void shareValues(LoopNest& nest) { Sharer(nest).run(); }

}  // namespace cutaway
