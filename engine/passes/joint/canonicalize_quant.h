#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// invoke_quant_packed becomes invoke_quant (JNT-3). Its options object becomes a dict of literals in the call (PyTorch
/// keeps it in the node's meta). If only this call uses the body and only the first result is read, the body returns
/// that result alone and the getitem goes. Leaves alone: calls whose options are not made by a call.
Result<bool> canonicalizeQuant(Module& module, Rewriter& rewriter);

}  // namespace cutaway
