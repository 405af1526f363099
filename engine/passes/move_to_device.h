#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Gives every type and every device argument the device that is compiled for, before anything is decided by device
/// (which attention kernel, which small products become sums). One rewrite, since a graph with values on two devices
/// would not verify. The module's tensors stay where they are.
Result<bool> moveToDevice(Module& module, Rewriter& rewriter);

}  // namespace cutaway
