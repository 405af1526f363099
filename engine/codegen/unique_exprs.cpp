#include "engine/codegen/unique_exprs.h"

#include <cstring>

#include "engine/schedule/kernel.h"

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

const std::set<std::string>& UniqueExprs::freeSymbols(const Expr& expr) {
    if (auto found = m_free.find(&*expr); found != m_free.end()) return found->second;
    std::set<std::string> free;
    if (expr->kind == ExprKind::Symbol) {
        free.insert(expr->name);
    } else {
        for (const Expr& operand : expr->operands) {
            const auto& inner = freeSymbols(operand);
            free.insert(inner.begin(), inner.end());
        }
        if (reduceKindOf(expr))
            for (const Loop& loop : reduceLoops(expr)) free.erase(loop.symbol);
    }
    m_keep.push_back(expr);
    return m_free.emplace(&*expr, std::move(free)).first->second;
}

}  // namespace cutaway
