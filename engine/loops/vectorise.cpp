#include "engine/loops/vectorise.h"

#include <map>
#include <set>

#include "engine/loops/index.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

class Vectoriser {
  public:
    explicit Vectoriser(LoopNest& nest) : m_nest(&nest) {}

    void run(Body& body) {
        Body result;
        std::vector<Alloc> allocs;  // of this body, until their lanes are joined
        allocs.reserve(body.size());
        for (size_t i = 0; i < body.size(); ++i) {
            Stmt& stmt = body[i];
            // Pieces of one loop stand one after the other; lanes are joined behind the last.
            const bool loop = std::holds_alternative<For>(stmt.node) &&
                              !(i + 1 < body.size() && std::holds_alternative<For>(body[i + 1].node));
            if (const auto* alloc = std::get_if<Alloc>(&stmt.node)) {
                allocs.push_back(*alloc);
                if (m_axis >= 0) widen(alloc->states);
            }
            change(stmt);
            result.push_back(std::move(stmt));
            if (!loop || m_axis >= 0) continue;
            std::vector<Alloc> joined;
            for (const Alloc& alloc : allocs)
                if (m_widened.contains(alloc.states[0]) && m_joined.insert(alloc.states[0]).second)
                    joined.push_back(alloc);
            if (m_nest->warp > 0) joinWarps(joined, result);
            else
                for (const Alloc& alloc : joined) joinLanes(alloc, result);
        }
        body = std::move(result);
    }

  private:
    bool varies(const Expr& expr) {
        bool found = false;
        forEachExpr({expr}, [&](const Expr& e) {
            found |= e->kind == ExprKind::Axis && e->integer == m_axis;
            found |= e->kind == ExprKind::Var && m_nest->vars[static_cast<size_t>(e->integer)].lanes > 1;
        });
        return found;
    }
    void widen(const std::vector<int>& states) {
        for (const int state : states) {
            m_nest->vars[static_cast<size_t>(state)].lanes = m_lanes;
            m_widened.insert(state);
        }
    }

    void change(Stmt& stmt) {
        m_loads.clear();
        std::visit([&](auto& own) { on(own); }, stmt.node);
    }
    void on(For& loop) {
        loop.from = scalar(loop.from);
        loop.to = scalar(loop.to);
        if (loop.lanes == 1) return run(loop.body);
        CT_CHECK(m_axis < 0, "vector loops do not contain each other");
        m_axis = loop.axis;
        m_lanes = loop.lanes;
        run(loop.body);
        m_axis = -1;
    }
    void on(If& branch) {
        branch.condition = scalar(branch.condition);
        run(branch.body);
    }
    void on(Index& index) { index.value = scalar(index.value); }
    void on(Let& let) { define(let.var, let.value); }
    void on(Declare& declare) { define(declare.var, declare.value); }
    void on(Set& set) { set.value = vector(set.value); }
    void on(Alloc&) {}
    void on(Barrier&) {}
    void on(Prefetch&) {}  // of the first lane
    void on(Transpose& transpose) {
        for (Expr* e : transpose.values()) *e = scalar(*e);
    }
    void on(Accumulate& accumulated) {
        accumulated.value = vector(accumulated.value);
        if (accumulated.at) accumulated.at = vector(accumulated.at);
        rename(accumulated.states);
        if (m_axis < 0) return;
        if (!m_widened.contains(accumulated.states[0])) {
            widen(accumulated.states);
            m_shared.insert(accumulated.states[0]);
        }
        // A state that lanes share must skip inactive lanes; that of an inactive lane's own row is never read.
        if (m_shared.contains(accumulated.states[0]))
            accumulated.active = Expr::call("active", {Expr::axis(m_axis)}, DType::Bool);
    }
    void on(Combine& combine) {
        for (Expr& with : combine.with) with = vector(with);
        rename(combine.states);
        if (m_axis < 0 || m_widened.contains(combine.states[0])) return;
        widen(combine.states);
        // Inactive lanes leave the states as they are.
        std::vector<DType> types;
        for (const int state : combine.states) types.push_back(m_nest->vars[static_cast<size_t>(state)].dtype);
        const std::vector<Expr> identity = reducer(combine.reducer).identity(types);
        const Expr active = Expr::call("active", {Expr::axis(m_axis)}, DType::Bool);
        for (size_t i = 0; i < combine.with.size(); ++i)
            combine.with[i] = Expr::where(active, combine.with[i], identity[i]);
    }
    void on(Store& store) {
        store.value = vector(store.value);
        auto [index, step] = address(store.index, lanes(store.value) > 1);
        store.index = std::move(index);
        store.step = std::move(step);
    }
    void define(int var, Expr& value) {
        value = vector(value);
        m_nest->vars[static_cast<size_t>(var)].lanes = lanes(value);
    }
    int lanes(const Expr& expr) const { return lanesOf(*m_nest, expr); }
    void rename(std::vector<int>& states) const {
        for (int& state : states)
            if (auto found = m_scalarOf.find(state); found != m_scalarOf.end()) state = found->second;
    }

    /// After the loop: combines the lanes of vector states by halves until one is left, with fewer dependent steps than
    /// lane by lane. Variables of one lane take the place of the vectors.
    void joinLanes(const Alloc& alloc, Body& body) {
        CT_CHECK((m_lanes & (m_lanes - 1)) == 0, "lanes are halved until one is left");
        for (int apart = m_lanes / 2; apart > 0; apart /= 2)
            combineWith(alloc, "lanes_from", apart, m_lanes, alloc.states, body);
        for (const int state : alloc.states) {
            const Expr vector = m_nest->var(state);
            const int one = m_nest->newVar(vector->dtype, 1, true);
            body.push_back({Declare{one, Expr::call("lane", {vector, Expr::integer(0)}, vector->dtype)}});
            m_scalarOf.emplace(state, one);
        }
    }

    /// The same where lanes are threads: warps by themselves, in registers, then what each warp has by every thread.
    void joinWarps(const std::vector<Alloc>& allocs, Body& body) {
        CT_CHECK((m_lanes & (m_lanes - 1)) == 0, "lanes are halved until one is left");
        const int warp = std::min(m_nest->warp, m_lanes);
        for (const Alloc& alloc : allocs)
            for (int apart = warp / 2; apart > 0; apart /= 2)
                combineWith(alloc, "lanes_xor", apart, m_lanes, alloc.states, body);
        for (const Alloc& alloc : allocs)
            for (const int state : alloc.states) {
                const Expr vector = m_nest->var(state);
                const int one = m_nest->newVar(vector->dtype, 1, true);
                body.push_back({Declare{one, Expr::call("lane", {vector, Expr::integer(0)}, vector->dtype)}});
                m_scalarOf.emplace(state, one);
            }
        for (const Alloc& alloc : allocs) {
            std::vector<int> ones = alloc.states;
            rename(ones);
            for (int lane = warp; lane < m_lanes; lane += warp) combineWith(alloc, "lane", lane, 1, ones, body);
        }
    }
    /// Merges into `states` what the function gives of the vectors of the reduction.
    void combineWith(const Alloc& alloc, const char* function, int argument, int lanes, const std::vector<int>& states,
                     Body& body) {
        Combine combine{alloc.reducer, states, {}};
        for (const int state : alloc.states) {
            const Expr vector = m_nest->var(state);
            const int other = m_nest->newVar(vector->dtype, lanes);
            body.push_back({Let{other, Expr::call(function, {vector, Expr::integer(argument)}, vector->dtype)}});
            combine.with.push_back(m_nest->var(other));
        }
        body.push_back({std::move(combine)});
    }

    Expr renamed(const Expr& e) const {
        if (e->kind != ExprKind::Var) return Expr();
        auto found = m_scalarOf.find(static_cast<int>(e->integer));
        return found == m_scalarOf.end() ? Expr() : Expr::var(found->second, e->dtype);
    }
    Expr scalar(const Expr& expr) {
        Expr result = rewriteShared(expr, [&](const Expr& e) { return renamed(e); });
        CT_CHECK(m_axis < 0 || !varies(result), "bounds do not vary along a vector");
        return result;
    }
    Expr vector(const Expr& expr) {
        return rewriteShared(expr, [&](const Expr& e) -> Expr {
            if (Expr scalar = renamed(e)) return scalar;
            if (m_axis < 0) return Expr();
            if (e->kind == ExprKind::Axis && e->integer == m_axis) return Expr::call("ramp", {e}, DType::I64);
            if (e->kind != ExprKind::Load) return Expr();
            // Once: where an index is made of loads, as of each step of a search, each would be made anew in all
            // others.
            if (const auto found = m_loads.find(&*e); found != m_loads.end()) return found->second.second;
            if (!varies(e)) return Expr();
            auto [index, step] = address(e->operands[0], true);
            Expr made = step ? Expr::loadAlong(e->name, index, step, e->dtype) : Expr::load(e->name, index, e->dtype);
            m_loads.emplace(&*e, std::pair(e, made));
            return made;
        });
    }
    /// (first, step) of an index along the lanes where it is affine, else (vector of indices, null).
    std::pair<Expr, Expr> address(const Expr& index, bool spread) {
        if (m_axis < 0) return {vector(index), Expr()};
        const auto affine = affineIn(index, m_axis);
        if (affine && !varies(affine->coefficient) && !varies(affine->rest)) {
            if (affine->coefficient.asInt() == 0 && !spread) return {vector(affine->rest), Expr()};
            const Expr along = Expr::make(ExprKind::Mul, {affine->coefficient, Expr::axis(m_axis)});
            return {Expr::make(ExprKind::Add, {affine->rest, along}), affine->coefficient};
        }
        // Where(c, index, other) whose condition is the same for all lanes, as padding along other axes than the
        // vector's gives it. `other` is the same in all lanes, too, so its step is 0.
        if (index->kind == ExprKind::Where && !varies(index->operands[0]) && !varies(index->operands[2])) {
            const auto [first, step] = address(index->operands[1], true);
            const Expr condition = vector(index->operands[0]);
            if (step)
                return {Expr::where(condition, first, vector(index->operands[2])),
                        Expr::where(condition, step, Expr::integer(0))};
        }
        return {vector(index), Expr()};
    }

    LoopNest* m_nest;
    int m_axis = -1, m_lanes = 1;
    std::set<int> m_widened, m_shared, m_joined;
    std::map<int, int> m_scalarOf;
    std::map<const ExprNode*, std::pair<Expr, Expr>> m_loads;  // of this statement: as they were, and as vectors
};

class ReductionLowerer {
  public:
    explicit ReductionLowerer(LoopNest& nest) : m_nest(&nest) {}
    void run(Body& body) {
        Body result;
        for (Stmt& stmt : body) {
            if (auto* loop = std::get_if<For>(&stmt.node)) run(loop->body);
            if (auto* branch = std::get_if<If>(&stmt.node)) run(branch->body);
            if (const auto* alloc = std::get_if<Alloc>(&stmt.node)) begin(*alloc, result);
            else if (const auto* accumulated = std::get_if<Accumulate>(&stmt.node)) step(*accumulated, result);
            else if (const auto* combine = std::get_if<Combine>(&stmt.node))
                assign(combine->states, reducer(combine->reducer).combine(read(combine->states), combine->with),
                       result);
            else result.push_back(std::move(stmt));
        }
        body = std::move(result);
    }

  private:
    std::vector<Expr> read(const std::vector<int>& states) const {
        std::vector<Expr> result;
        for (const int state : states) result.push_back(m_nest->var(state));
        return result;
    }
    void begin(const Alloc& alloc, Body& body) {
        std::vector<DType> types;
        for (const int state : alloc.states) types.push_back(m_nest->vars[static_cast<size_t>(state)].dtype);
        const std::vector<Expr> identity = reducer(alloc.reducer).identity(types);
        for (size_t i = 0; i < alloc.states.size(); ++i) body.push_back({Declare{alloc.states[i], identity[i]}});
    }
    void step(const Accumulate& accumulated, Body& body) {
        const std::vector<Expr> states = read(accumulated.states);
        std::vector<Expr> next = reducer(accumulated.reducer).step(states, accumulated.value, accumulated.at);
        if (accumulated.active)
            for (size_t i = 0; i < next.size(); ++i) next[i] = Expr::where(accumulated.active, next[i], states[i]);
        assign(accumulated.states, next, body);
    }
    /// Assigns all states at once: each next value reads the old values of all.
    void assign(const std::vector<int>& states, const std::vector<Expr>& next, Body& body) {
        if (states.size() == 1) {
            body.push_back({Set{states[0], next[0]}});
            return;
        }
        std::vector<int> made;
        for (size_t i = 0; i < states.size(); ++i) {
            const int lanes = m_nest->vars[static_cast<size_t>(states[i])].lanes;
            made.push_back(m_nest->newVar(next[i]->dtype, lanes));
            body.push_back({Let{made.back(), next[i]}});
        }
        for (size_t i = 0; i < states.size(); ++i) body.push_back({Set{states[i], m_nest->var(made[i])}});
    }
    LoopNest* m_nest;
};

}  // namespace

void vectorise(LoopNest& nest) { Vectoriser(nest).run(nest.body); }
void lowerReductions(LoopNest& nest) { ReductionLowerer(nest).run(nest.body); }

}  // namespace cutaway
