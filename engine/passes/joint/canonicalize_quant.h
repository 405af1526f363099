#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// invoke_quant_packed becomes invoke_quant (JNT-3). The object with its options becomes a dict of literals, always
/// there, which PyTorch keeps in the node's meta and lowering reads. Where the call alone reads its body and only the
/// first result is read, the body returns it bare and the getitem goes. Leaves alone: calls whose options are no call
/// of their own.
Result<bool> canonicalizeQuant(Module& module, Rewriter& rewriter);

}  // namespace cutaway
