// Indices of 32 bits, where the plan says so: on GPUs arithmetic on 64 takes several instructions. Counters of loops
// stay as they are.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/loops/index.h"
#include "engine/loops/vectorise.h"

namespace cutaway {
namespace {

/// Lowering rounds loops up to whole vectors and blocks, so that what it adds to indices is left half of the range.
constexpr int64_t kMost = int64_t{1} << 30;

/// Whether a loop over all of these has less than kMost steps.
bool isShort(const std::vector<Loop>& loops, int64_t times = 1) {
    for (const Loop& loop : loops) {
        const auto size = loop.size.asInt();
        if (!size || *size > kMost / times) return false;
        times *= std::max<int64_t>(*size, 1);
    }
    return true;
}

/// Whether an index keeps its value when it is computed in 32 bits. `seen`: what does.
bool fits(const Expr& index, IndexSimplifier& loops, std::unordered_set<const ExprNode*>& seen) {
    if (!seen.insert(&*index).second) return true;
    const auto bounds = loops.boundsOf(index);
    if (!bounds || bounds->low < -kMost || bounds->high > kMost) return false;
    if (index->kind == ExprKind::Load || index->kind == ExprKind::Call || index->kind == ExprKind::Cast) return true;
    return std::all_of(index->operands.begin(), index->operands.end(),
                       [&](const Expr& operand) { return operand->dtype != DType::I64 || fits(operand, loops, seen); });
}

class Narrower {
  public:
    explicit Narrower(LoopNest& nest) : m_nest(&nest) {}

    void run() { body(m_nest->body); }

  private:
    void body(Body& statements) {
        for (Stmt& stmt : statements) {
            forEachValue(stmt, [&](Expr& e) { e = loads(e); });
            if (auto* store = std::get_if<Store>(&stmt.node)) {
                store->index = narrow(store->index);
                if (store->step) store->step = narrow(store->step);
            }
            if (auto* transpose = std::get_if<Transpose>(&stmt.node))
                for (Expr* e : transpose->values()) *e = narrow(*e);
            if (auto* loop = std::get_if<For>(&stmt.node)) body(loop->body);
            if (auto* branch = std::get_if<If>(&stmt.node)) body(branch->body);
        }
    }
    /// The expression with narrow indices of all loads.
    Expr loads(const Expr& value) {
        return rewriteShared(value, [&](const Expr& e) {
            if (e->kind != ExprKind::Load) return Expr();
            // Once: each step of a search reads where all steps before it have led.
            if (const auto found = m_loads.find(&*e); found != m_loads.end()) return found->second;
            std::vector<Expr> operands;
            for (const Expr& operand : e->operands) operands.push_back(narrow(loads(operand)));
            m_keep.push_back(e);
            return m_loads.emplace(&*e, withOperands(e, std::move(operands))).first->second;
        });
    }
    /// An index of 64 bits as one of 32, computed in them as far as its axes, sizes and what is read.
    Expr narrow(const Expr& e) {
        if (auto found = m_narrow.find(&*e); found != m_narrow.end()) return found->second;
        Expr result = computed(e);
        m_narrow.emplace(&*e, result);
        m_keep.push_back(e);
        return result;
    }
    Expr computed(const Expr& e) {
        const auto operands = [&](size_t first) {
            std::vector<Expr> all = e->operands;
            std::for_each(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                          [&](Expr& operand) { operand = narrow(operand); });
            return all;
        };
        switch (e->kind) {
            case ExprKind::Int: return Expr::integer(e->integer, DType::I32);
            case ExprKind::Add:
            case ExprKind::Sub:
            case ExprKind::Mul:
            case ExprKind::FloorDiv:
            case ExprKind::Mod:
            case ExprKind::Min:
            case ExprKind::Max: return Expr::make(e->kind, operands(0), DType::I32);
            case ExprKind::Where: return Expr::make(e->kind, operands(1), DType::I32);
            case ExprKind::Call:
                if (e->name == "ramp") return Expr::call(e->name, e->operands, DType::I32);
                if (e->name == "quotient" || e->name == "remainder")
                    return Expr::call(e->name, operands(0), DType::I32);
                break;
            default: break;
        }
        return Expr::cast(e, DType::I32);
    }

    LoopNest* m_nest;
    std::unordered_map<const ExprNode*, Expr> m_loads, m_narrow;
    std::vector<Expr> m_keep;  // keeps the nodes alive whose addresses are keys
};

}  // namespace

bool fitsNarrowIndices(const LoopPlan& plan, const Kernel& kernel) {
    IndexSimplifier loops;
    std::vector<Expr> values, indices;
    const auto known = [&](const std::vector<Loop>& own, int64_t times = 1) {
        for (const Loop& loop : own) loops.setSize(loop.axis, loop.size);
        return isShort(own, times);
    };
    // Each part of an inner loop writes states for each row.
    if (!known(kernel.outer, plan.split)) return false;
    for (const Expr& r : reductionsOf(kernel)) {
        if (!known(reduceLoops(r))) return false;
        values.push_back(r);
    }
    for (const KernelStore& store : kernel.stores) {
        if (!known(store.inner)) return false;
        indices.push_back(store.index);
        values.push_back(store.value);
    }
    forEachExpr(values, [&](const Expr& e) {
        if (e->kind == ExprKind::Load) indices.push_back(e->operands[0]);
    });
    std::unordered_set<const ExprNode*> seen;
    return std::all_of(indices.begin(), indices.end(), [&](const Expr& index) { return fits(index, loops, seen); });
}

void narrowIndices(LoopNest& nest) { Narrower(nest).run(); }

}  // namespace cutaway
