#include "engine/loops/unique_exprs.h"

#include <cstring>

#include "engine/loops/kernel.h"

namespace cutaway {
namespace {

bool sameShallow(const Expr& a, const Expr& b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->integer != b->integer || a->name != b->name ||
        a->operands.size() != b->operands.size() || std::memcmp(&a->real, &b->real, sizeof a->real) != 0)
        return false;
    for (size_t i = 0; i < a->operands.size(); ++i)
        if (&*a->operands[i] != &*b->operands[i]) return false;
    return true;
}

}  // namespace

Expr UniqueExprs::unique(const Expr& expr) {
    if (auto found = m_unique.find(&*expr); found != m_unique.end()) return found->second;
    std::vector<Expr> operands;
    bool changed = false;
    for (const Expr& operand : expr->operands) {
        operands.push_back(unique(operand));
        changed |= &*operands.back() != &*operand;
    }
    // Rebuilt without simplifying, which was done before and might now give another result.
    Expr candidate = expr;
    if (changed) {
        ExprNode node = *expr;
        node.operands = std::move(operands);
        candidate = Expr(std::make_shared<const ExprNode>(std::move(node)));
    }
    for (const Expr& known : m_byHash[candidate->hash])
        if (sameShallow(known, candidate)) {
            m_unique.emplace(&*expr, known);
            m_keep.push_back(expr);
            return known;
        }
    m_byHash[candidate->hash].push_back(candidate);
    m_unique.emplace(&*expr, candidate);
    m_unique.emplace(&*candidate, candidate);
    m_keep.push_back(expr);
    return candidate;
}

const std::set<int>& UniqueExprs::leaves(const Expr& expr) {
    if (auto found = m_leaves.find(&*expr); found != m_leaves.end()) return found->second;
    std::set<int> read;
    if (expr->kind == ExprKind::Axis) read.insert(axisKey(static_cast<int>(expr->integer)));
    if (expr->kind == ExprKind::Var) read.insert(varKey(static_cast<int>(expr->integer)));
    for (const Expr& operand : expr->operands) {
        const auto& inner = leaves(operand);
        read.insert(inner.begin(), inner.end());
    }
    if (isReduce(expr))
        for (const Loop& loop : reduceLoops(expr)) read.erase(axisKey(loop.axis));
    m_keep.push_back(expr);
    return m_leaves.emplace(&*expr, std::move(read)).first->second;
}

}  // namespace cutaway
