#pragma once
// Values whose reductions are rebuilt with other loops.
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/loops/kernel.h"

namespace cutaway {

/// Rebuilds values from their operands up. A shared expression is rebuilt once for all values of one rewriter.
class ReductionRewriter {
  public:
    /// `change` gets each reduction, its operands rebuilt, and gives what takes its place: itself if it stays.
    explicit ReductionRewriter(std::function<Expr(const Expr& reduction)> change) : m_change(std::move(change)) {}
    Expr rewrite(const Expr& expr);

  private:
    std::function<Expr(const Expr&)> m_change;
    std::unordered_map<const ExprNode*, Expr> m_done;
    std::vector<Expr> m_keep;  // so that no address is used again
};

}  // namespace cutaway
