#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Types every value, and writes every device argument, for the device that is compiled for, before anything is decided
/// by device (which attention kernel, which small products become sums). One rewrite, since a graph with values on two
/// devices would not verify. The tensors of the module stay where they are.
Result<bool> moveToDevice(Module& module, Rewriter& rewriter);

}  // namespace cutaway
