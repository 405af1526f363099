#pragma once
// Numbers of elements, which are expressions where sizes are symbols, as factors.
#include "engine/ops/build.h"

namespace cutaway {

/// x times factor/count: one product if the count is a number, a product and a quotient if it is known at run time
/// only.
inline Value scaledByCount(const Value& x, double factor, const SymInt& count) {
    if (count.isInt()) return x * (factor / static_cast<double>(count.value()));
    const Value scaled = factor == 1 ? x : x * factor;
    return scaled ? scaled.builder().call("aten.div.Scalar", {scaled, Argument(count)}) : scaled;
}

}  // namespace cutaway
