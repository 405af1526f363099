#pragma once
// Simplifies index arithmetic with what is known of the loops: 0 <= axis < size. This is what turns the
// arithmetic of a chain of views back into plain strides.
#include <unordered_map>

#include "engine/loops/kernel.h"

namespace cutaway {

/// Inclusive bounds of an integer expression.
struct Bounds {
    int64_t low = 0, high = 0;
};

class IndexSimplifier {
  public:
    void setSize(int axis, const SymInt& size);
    std::optional<Bounds> boundsOf(const Expr& expr);
    /// Integer and boolean structure only; loads are left as they are.
    Expr simplify(const Expr& expr);

  private:
    Expr simplifyNode(const Expr& expr);
    std::unordered_map<int, SymInt> m_sizes;
    std::unordered_map<const ExprNode*, Expr> m_done;
    std::unordered_map<const ExprNode*, std::optional<Bounds>> m_bounds;
    std::vector<Expr> m_keep;  // keeps the nodes alive whose addresses are keys
};

/// Of numbers whose quotient fits; b is not 0.
int64_t floorDivide(int64_t a, int64_t b);

/// expr = coefficient * axis + rest, where rest does not read the axis; nullopt if it is not of that form.
struct Affine {
    Expr coefficient, rest;
};
std::optional<Affine> affineIn(const Expr& expr, int axis);
bool reads(const Expr& expr, int axis);
/// Whether it is seen at once that an index is never negative, whatever its axes and sizes are.
bool indexNeverNegative(const Expr& index);

}  // namespace cutaway
