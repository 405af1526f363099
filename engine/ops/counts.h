#pragma once
// Arithmetic with numbers of elements, which are numbers or, where sizes are symbols, expressions.
#include "engine/ops/build.h"

namespace cutaway {

/// x times factor/count: one product where the count is a number, a product and a quotient where it is only known at
/// run time.
inline Value scaledByCount(const Value& x, double factor, const SymInt& count) {
    if (count.isInt()) return x * (factor / static_cast<double>(count.value()));
    const Value scaled = factor == 1 ? x : x * factor;
    return scaled ? scaled.builder().call("aten.div.Scalar", {scaled, Argument(count)}) : scaled;
}

}  // namespace cutaway
