#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Turns functional writes back into writes in place where nobody reads the old value any more (PST-19): index_put
/// becomes index_put_, an all_reduce writes to its operand, optimizers' calls on lists write to the inputs that their
/// results are copied into, a scatter into a view becomes a copy into that view, after scatters into one place are
/// merged (scatter_places.h). A write into a graph input needs a copy_ into that input behind it, which goes if it
/// copies just that value. The graph is not functional afterwards. Leaves alone: scatters whose operand and result
/// would otherwise never be in memory, operands that share memory with another argument, and wrappers, which know
/// themselves what they must copy (wrappers.h). What becomes a copy into a part in any case (a diagonal, strided
/// memory) is written into a clone where the old value is read later.
Result<bool> reinplaceOps(Module& module, Rewriter& rewriter);

}  // namespace cutaway
