// Vectors of rows that go through reductions together: each step of an inner loop reads several cache lines side by
// side.
#include "engine/loops/vectorise.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

Expr makeUnrolled(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}); }

class UnrollAndJam {
  public:
    explicit UnrollAndJam(LoopNest& nest) : m_nest(&nest) { run(nest.body); }

  private:
    void run(Body& body) {
        Body result;
        for (Stmt& stmt : body) {
            if (auto* branch = std::get_if<If>(&stmt.node)) run(branch->body);
            auto* loop = std::get_if<For>(&stmt.node);
            if (loop && loop->unrollJam > 1) {
                split(std::move(*loop), result);
                continue;
            }
            if (loop) run(loop->body);
            result.push_back(std::move(stmt));
        }
        body = std::move(result);
    }

    /// All vectors of the loop at once where it has as many, else one after the other.
    void split(For loop, Body& body) {
        const int unrollJam = std::exchange(loop.unrollJam, 1);
        const Expr elements = Expr::integer(int64_t{unrollJam} * loop.lanes);
        const Expr length = makeUnrolled(ExprKind::Sub, loop.to, loop.from);
        For all = loop;
        all.to = makeUnrolled(ExprKind::Add, loop.from, Expr::integer(loop.lanes));
        all.whole = true;
        m_axis = loop.axis;
        m_lanes = loop.lanes;
        m_own.assign(static_cast<size_t>(unrollJam), {});
        all.body = unrolled(loop.body);
        if (length == elements) {
            body.push_back({std::move(all)});
            return;
        }
        If enough{makeUnrolled(ExprKind::Eq, length, elements), {}},
            fewer{makeUnrolled(ExprKind::Ne, length, elements), {}};
        enough.body.push_back({std::move(all)});
        fewer.body.push_back({std::move(loop)});
        body.push_back({std::move(enough)});
        body.push_back({std::move(fewer)});
    }
    Body unrolled(const Body& body) {
        Body result;
        for (const Stmt& stmt : body) {
            if (const auto* loop = std::get_if<For>(&stmt.node)) {
                For own = *loop;  // bounds are the same for all lanes, so for all vectors
                own.body = unrolled(loop->body);
                result.push_back({std::move(own)});
            } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
                result.push_back({If{branch->condition, unrolled(branch->body)}});
            } else {
                for (size_t k = 0; k < m_own.size(); ++k) result.push_back(copy(stmt, k));
            }
        }
        return result;
    }
    /// The statement of the k-th vector, with variables of its own.
    Stmt copy(Stmt stmt, size_t k) {
        CT_CHECK(!std::holds_alternative<Index>(stmt.node), "axes are bound outside of loops over vectors");
        const Expr further = Expr::integer(static_cast<int64_t>(k) * m_lanes);
        forEachValue(stmt, [&](Expr& value) { value = movedAlong(value, m_axis, further, m_own[k]); });
        if (auto* let = std::get_if<Let>(&stmt.node)) define(let->var, k);
        else if (auto* alloc = std::get_if<Alloc>(&stmt.node))
            for (int& state : alloc->states) define(state, k);
        else if (auto* accumulated = std::get_if<Accumulate>(&stmt.node)) rename(accumulated->states, k);
        else if (auto* combine = std::get_if<Combine>(&stmt.node)) rename(combine->states, k);
        return stmt;
    }
    void define(int& var, size_t k) {
        if (k == 0) return;
        const NestVar type = m_nest->vars[static_cast<size_t>(var)];
        const int own = m_nest->newVar(type.dtype, type.lanes, type.changes);
        m_own[k][std::exchange(var, own)] = own;
    }
    void rename(std::vector<int>& states, size_t k) const {
        for (int& state : states)
            if (const auto found = m_own[k].find(state); found != m_own[k].end()) state = found->second;
    }

    LoopNest* m_nest;
    int m_axis = 0, m_lanes = 1;
    std::vector<std::map<int, int>> m_own;  // of each vector but the first: variables in place of the first's
};

}  // namespace

void unrollAndJam(LoopNest& nest) { UnrollAndJam run(nest); }

}  // namespace cutaway
