#pragma once
// Gives equal expressions one address, so that what is printed once can be found again, and keeps by that address the
// loop symbols that an expression reads. Nothing is simplified: that has been done, and doing it again would change
// results.
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/expr/expr.h"

namespace cutaway {

class UniqueExprs {
  public:
    /// The one expression that stands for all equal to this one.
    Expr unique(const Expr& expr);
    /// Loop symbols that an expression reads and does not bind itself.
    const std::set<std::string>& freeSymbols(const Expr& expr);
    /// Keeps the expression alive, so that no other gets its address.
    void keep(const Expr& expr) { m_keep.push_back(expr); }

  private:
    std::unordered_map<const ExprNode*, Expr> m_unique;
    std::unordered_map<uint64_t, std::vector<Expr>> m_byHash;
    std::unordered_map<const ExprNode*, std::set<std::string>> m_free;
    std::vector<Expr> m_keep;
};

}  // namespace cutaway
