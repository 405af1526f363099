#pragma once
// What computing a value again costs (spec: autograd B.9).
#include <optional>

#include "engine/interpret/specialize.h"
#include "engine/partition/options.h"
#include "engine/rewrite/pass_context.h"

namespace cutaway {

/// Floating point operations of a product, a convolution or attention, as torch.utils.flop_counter counts them; 0 for
/// any other call. Symbols without an example count as 4096.
double flopsOf(const Node& call, const SymbolValues& hints);

/// The estimator decides the unit: flops, at least 1; milliseconds, measured by CompileHooks::timeGraph (without it,
/// or where a call cannot be timed: its flops at 100 GFLOPS); or 1 for each node.
double runtimeOf(const Node& node, Estimator estimator, const SymbolValues& hints, const PassContext& context);

}  // namespace cutaway
