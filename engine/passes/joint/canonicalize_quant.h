#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// invoke_quant_packed becomes invoke_quant without its quant_options (JNT-3), which no rule reads; where the call alone
/// reads its body and only the first result is read, the body returns it bare and the getitem goes. Leaves alone: calls whose
/// options are no call of their own.
Result<bool> canonicalizeQuant(Module& module, Rewriter& rewriter);

}  // namespace cutaway
