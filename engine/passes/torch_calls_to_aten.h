#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Writes calls as Dynamo records them (torch.nn.functional.relu(x), x.view(2, 3), x + y, x[:, 0]) as ATen calls. Sizes
/// and other values known at compile time are written into the calls that read them. Leaves alone: operators of
/// torch.ops, and calls of modules. A call it cannot write is an error that names it.
Result<bool> torchCallsToAten(Module& module, Rewriter& rewriter);

}  // namespace cutaway
