#include "engine/loops/rewrite_reductions.h"

namespace cutaway {

Expr ReductionRewriter::rewrite(const Expr& expr) {
    if (auto found = m_done.find(&*expr); found != m_done.end()) return found->second;
    Expr result = expr;
    std::vector<Expr> operands;
    bool changed = false;
    for (const Expr& operand : expr->operands) {
        operands.push_back(rewrite(operand));
        changed |= &*operands.back() != &*operand;
    }
    if (changed) result = withOperands(expr, std::move(operands));
    if (isReduce(result)) result = m_change(result);
    m_keep.push_back(expr);
    m_done.emplace(&*expr, result);
    return result;
}

}  // namespace cutaway
