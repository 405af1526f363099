#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Turns functional writes back into writes in place where nobody reads the old value any more (PST-19): index_put
/// becomes index_put_, a scatter into a view becomes a copy into that view. A write into a graph input needs the copy_
/// that ends the graph, which then goes. The graph is not functional afterwards. Leaves alone: scatters whose operand and
/// result would otherwise never be in memory, operands that share memory with another argument.
Result<bool> reinplaceOps(Module& module, Rewriter& rewriter);

}  // namespace cutaway
