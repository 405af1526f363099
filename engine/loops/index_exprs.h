#pragma once
// Index arithmetic, as short as it reads in a formula.
#include "engine/loops/kernel.h"

namespace cutaway {

inline Expr number(int64_t value) { return Expr::integer(value); }
inline Expr minimum(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Min, {a, b}); }
inline Expr quotient(const Expr& a, const Expr& b) { return Expr::make(ExprKind::FloorDiv, {a, b}); }
inline Expr remainder(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mod, {a, b}); }
inline Expr sum(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}); }
inline Expr difference(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Sub, {a, b}); }
inline Expr times(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}); }
inline Expr times(const Expr& a, int64_t b) { return times(a, number(b)); }
/// ceil(size / step).
inline SymInt blocks(const SymInt& size, int64_t step) { return floorDiv(size + SymInt(step - 1), SymInt(step)); }
/// The end of a block of so many elements that begins at `first`, cut to the size.
inline Expr endOfBlock(const Expr& first, int64_t count, const SymInt& size) {
    const Expr end = sum(first, number(count));
    return size.asInt().value_or(1) % count == 0 ? end : minimum(end, size.expr());
}

}  // namespace cutaway
