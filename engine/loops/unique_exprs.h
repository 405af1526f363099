#pragma once
// Gives equal expressions one address, so that what is computed once can be found again, and keeps by that address the
// axes and variables that an expression reads. Nothing is simplified: that has been done, and doing it again would
// change results.
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/expr/expr.h"

namespace cutaway {

/// One number for both kinds: axes are even, variables odd.
inline int axisKey(int axis) { return 2 * axis; }
inline int varKey(int var) { return 2 * var + 1; }

class UniqueExprs {
  public:
    /// The one expression that stands for all equal to this one.
    Expr unique(const Expr& expr);
    /// Axes and variables that an expression reads and does not bind itself: axisKey or varKey of each.
    const std::set<int>& leaves(const Expr& expr);
    /// Keeps the expression alive, so that no other gets its address.
    void keep(const Expr& expr) { m_keep.push_back(expr); }

  private:
    std::unordered_map<const ExprNode*, Expr> m_unique;
    std::unordered_map<uint64_t, std::vector<Expr>> m_byHash;
    std::unordered_map<const ExprNode*, std::set<int>> m_leaves;
    std::vector<Expr> m_keep;
};

}  // namespace cutaway
