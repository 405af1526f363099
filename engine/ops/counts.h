#pragma once
// Numbers of elements, which are expressions where sizes are symbols: comparing them, and using them as factors.
#include "engine/ops/build.h"

namespace cutaway {

/// Whether two sizes are known to differ: symbols may turn out to be equal.
inline bool differ(const SymInt& a, const SymInt& b) { return a.isInt() && b.isInt() && a.value() != b.value(); }
inline bool differ(const SymDims& a, const SymDims& b) {
    return !std::equal(a.begin(), a.end(), b.begin(), b.end(),
                       [](const SymInt& x, const SymInt& y) { return !differ(x, y); });
}

/// x times factor/count: one product if the count is a number, a product and a quotient if it is known at run time
/// only.
inline Value scaledByCount(const Value& x, double factor, const SymInt& count) {
    if (count.isInt()) return x * (factor / static_cast<double>(count.value()));
    const Value scaled = factor == 1 ? x : x * factor;
    return scaled ? scaled.builder().call("aten.div.Scalar", {scaled, Argument(count)}) : scaled;
}

}  // namespace cutaway
