#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

// What follows a quantized product becomes part of it: a function, an addition, quantization (spec: QO §7; PyTorch's
// lists 3 to 5, in this order, since longer forms hold shorter ones).

/// Up to the quantization of the result.
std::span<const Rule> quantizedOutputRules();
Result<bool> fuseQuantizedOutput(Module& module, Rewriter& rewriter);
/// Float results: a function, perhaps behind an addition.
std::span<const Rule> quantizedFunctionRules();
Result<bool> fuseQuantizedFunction(Module& module, Rewriter& rewriter);
/// Float results: an addition.
std::span<const Rule> quantizedSumRules();
Result<bool> fuseQuantizedSum(Module& module, Rewriter& rewriter);

}  // namespace cutaway
