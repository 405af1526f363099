#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A dequantized tensor with several readers is dequantized for each of them, so that each may become a quantized
/// product (spec: QO §5.1).
Result<bool> promoteDequantize(Module& module, Rewriter& rewriter);

/// Convolutions and matrix products of dequantized operands become products of the integers (spec: QO §5.2, 5.3).
/// Only with parity, as PyTorch, where that changes the result (traps of QO §7): transposed convolutions, weights that
/// are scaled along another dim or have zero points, reshapes that do not undo each other.
Result<bool> packQuantizedWeights(Module& module, Rewriter& rewriter);

/// Products whose weights are rounded to half precision, and int8 products that are scaled afterwards (SmoothQuant),
/// become calls that do it all (spec: QO §5.4, 5.5).
Result<bool> packDynamicWeights(Module& module, Rewriter& rewriter);

}  // namespace cutaway
