#pragma once
// torch.switch: one of many graphs, chosen by a number.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Writes higher_order.switch(index, [graphs], (operands)) as conds, each of which chooses between a graph and the cond
/// of those behind it, so that later passes know conds alone. The index names a graph: torch.switch writes a clamp
/// before the call. Errors: a call that is not written so, graphs that the file does not have.
Result<bool> switchToCond(Module& module, Rewriter& rewriter);

}  // namespace cutaway
