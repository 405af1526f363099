// Reductions with several states: a step of one does not wait for the step before.
#include <map>

#include "engine/loops/index_exprs.h"
#include "engine/loops/vectorise.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

Expr makeIndex(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}); }

class Accumulators {
  public:
    explicit Accumulators(LoopNest& nest) : m_nest(&nest) {
        find(nest.body);
        run(nest.body);
    }

  private:
    /// The states that loops with accumulators step. Loops with others inside have none: a copy is of statements alone.
    void find(Body& body) {
        for (Stmt& stmt : body) {
            if (auto* branch = std::get_if<If>(&stmt.node)) find(branch->body);
            auto* loop = std::get_if<For>(&stmt.node);
            if (loop == nullptr) continue;
            find(loop->body);
            for (const Stmt& inner : loop->body)
                if (std::holds_alternative<For>(inner.node) || std::holds_alternative<If>(inner.node))
                    loop->accumulators = 1;
            if (loop->accumulators == 1) continue;
            for (const Stmt& inner : loop->body)
                if (const auto* accumulated = std::get_if<Accumulate>(&inner.node))
                    m_counts[accumulated->states[0]] = loop->accumulators;
        }
    }

    void run(Body& body) {
        Body result;
        std::vector<Alloc> allocs;  // of this body, whose states have copies
        for (Stmt& stmt : body) {
            if (const auto* alloc = std::get_if<Alloc>(&stmt.node); alloc && m_counts.contains(alloc->states[0])) {
                allocs.push_back(*alloc);
                addStates(*alloc, result);
                continue;
            }
            // Lanes are joined when all accumulators are in the first.
            if (const auto* let = std::get_if<Let>(&stmt.node); let && let->value->kind == ExprKind::Call &&
                                                                let->value->name.starts_with("lanes_") &&
                                                                !allocs.empty()) {
                for (const Alloc& alloc : allocs) joinAccumulators(alloc, result);
                allocs.clear();
            }
            if (auto* branch = std::get_if<If>(&stmt.node)) run(branch->body);
            auto* loop = std::get_if<For>(&stmt.node);
            if (loop && loop->accumulators > 1) {
                split(std::move(*loop), result);
                continue;
            }
            if (loop) run(loop->body);
            result.push_back(std::move(stmt));
        }
        CT_CHECK(allocs.empty(), "lanes are joined behind the loops whose states have accumulators");
        body = std::move(result);
    }
    void addStates(const Alloc& alloc, Body& body) {
        body.push_back({alloc});
        for (int chain = 1; chain < m_counts.at(alloc.states[0]); ++chain) {
            Alloc own = alloc;
            for (int& state : own.states) {
                const NestVar type = m_nest->vars[static_cast<size_t>(state)];
                const int first = std::exchange(state, m_nest->newVar(type.dtype, type.lanes, true));
                m_states[{first, chain}] = state;
            }
            body.push_back({std::move(own)});
        }
    }
    void joinAccumulators(const Alloc& alloc, Body& body) {
        for (int chain = 1; chain < m_counts.at(alloc.states[0]); ++chain) {
            Combine combine{alloc.reducer, alloc.states, {}};
            for (const int state : alloc.states) combine.with.push_back(m_nest->var(m_states.at({state, chain})));
            body.push_back({std::move(combine)});
        }
    }

    /// The stretches in one loop, and what is left of the range in another.
    void split(For loop, Body& body) {
        const int64_t accumulators = std::exchange(loop.accumulators, 1), step = accumulators * loop.lanes;
        m_apart = accumulators;
        const auto from = loop.from.asInt(), to = loop.to.asInt();
        if (from && to && *to - *from < step) {
            body.push_back({std::move(loop)});
            return;
        }
        const Expr length = makeIndex(ExprKind::Max, makeIndex(ExprKind::Sub, loop.to, loop.from), number(0));
        const Expr stretch =
            makeIndex(ExprKind::Mul, makeIndex(ExprKind::FloorDiv, length, number(step)), number(loop.lanes));
        const bool neighbours = m_nest->warp > 0;  // a thread reads them at once
        For unrolled = loop;
        if (neighbours) unrolled.from = number(0);
        unrolled.to = makeIndex(ExprKind::Add, unrolled.from, stretch);
        unrolled.whole = true;
        unrolled.body.clear();
        for (int chain = 0; chain < accumulators; ++chain) {
            std::map<int, int> vars;
            const Expr further = makeIndex(ExprKind::Mul, stretch, number(chain));
            const Expr first = makeIndex(ExprKind::Add, loop.from, number(chain));
            appendCopy(loop, chain, vars, unrolled.body, [&](const Expr& e) {
                return neighbours ? neighbour(e, loop.axis, accumulators, first, vars)
                                  : movedAlong(e, loop.axis, further, vars);
            });
        }
        body.push_back({std::move(unrolled)});
        if (from && to && (*to - *from) % step == 0) return;
        loop.from = makeIndex(ExprKind::Add, loop.from, makeIndex(ExprKind::Mul, stretch, number(accumulators)));
        body.push_back({std::move(loop)});
    }
    /// The expression at `first` + count * axis, where it was at the axis, so that lanes are `count` apart.
    static Expr neighbour(const Expr& expr, int axis, int64_t count, const Expr& first,
                          const std::map<int, int>& vars) {
        return rewriteShared(expr, [&](const Expr& e) -> Expr {
            const auto isAxis = [axis](const Expr& own) { return own->kind == ExprKind::Axis && own->integer == axis; };
            if (isAxis(e) || (e->kind == ExprKind::Call && e->name == "ramp" && isAxis(e->operands[0])))
                return makeIndex(ExprKind::Add, first, makeIndex(ExprKind::Mul, e, number(count)));
            if (e->kind == ExprKind::Load && e->operands.size() == 2)
                return Expr::loadAlong(e->name, neighbour(e->operands[0], axis, count, first, vars),
                                       timesStep(e->operands[1], count), e->dtype);
            if (e->kind != ExprKind::Var) return Expr();
            const auto found = vars.find(static_cast<int>(e->integer));
            return found == vars.end() ? Expr() : Expr::var(found->second, e->dtype);
        });
    }
    /// Of a load or store; one that a condition chooses stays a choice.
    static Expr timesStep(const Expr& step, int64_t count) {
        if (step->kind != ExprKind::Where) return makeIndex(ExprKind::Mul, step, number(count));
        return Expr::where(step->operands[0], timesStep(step->operands[1], count), step->operands[2]);
    }
    /// The body of the loop where `moved` has its expressions, with the states of the accumulator.
    template <class Moved>
    void appendCopy(const For& loop, int chain, std::map<int, int>& vars, Body& to, const Moved& moved) {
        for (Stmt stmt : loop.body) {
            forEachValue(stmt, [&](Expr& value) { value = moved(value); });
            if (auto* store = std::get_if<Store>(&stmt.node); store && store->step && m_nest->warp > 0)
                store->step = timesStep(store->step, m_apart);
            if (auto* accumulated = std::get_if<Accumulate>(&stmt.node)) {
                accumulated->active = Expr();  // all lanes are
                if (chain > 0)
                    for (int& state : accumulated->states) state = m_states.at({state, chain});
            }
            if (auto* let = std::get_if<Let>(&stmt.node); let && chain > 0) {
                const NestVar type = m_nest->vars[static_cast<size_t>(let->var)];
                const int own = m_nest->newVar(type.dtype, type.lanes);
                vars[std::exchange(let->var, own)] = own;
            }
            to.push_back(std::move(stmt));
        }
    }
    LoopNest* m_nest;
    int64_t m_apart = 1;                          // lanes of the loop that is split, where accumulators take neighbours
    std::map<int, int> m_counts;                  // by the first state of a reduction
    std::map<std::pair<int, int>, int> m_states;  // (state, accumulator from 1 on): the accumulator's own
};

}  // namespace

Expr movedAlong(const Expr& expr, int axis, const Expr& further, const std::map<int, int>& vars) {
    return rewriteShared(expr, [&](const Expr& e) {
        const auto isAxis = [axis](const Expr& own) { return own->kind == ExprKind::Axis && own->integer == axis; };
        if (isAxis(e) || (e->kind == ExprKind::Call && e->name == "ramp" && isAxis(e->operands[0])))
            return further.asInt() == 0 ? e : makeIndex(ExprKind::Add, e, further);
        if (e->kind != ExprKind::Var) return Expr();
        const auto found = vars.find(static_cast<int>(e->integer));
        return found == vars.end() ? Expr() : Expr::var(found->second, e->dtype);
    });
}

void splitAccumulators(LoopNest& nest) { Accumulators run(nest); }

}  // namespace cutaway
