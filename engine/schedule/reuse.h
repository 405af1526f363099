#pragma once
// Values that a kernel writes over one of its operands, which nobody reads afterwards: both are one buffer of the
// kernel.
#include "engine/schedule/program.h"

namespace cutaway {

/// Why elements of buffer `operand` might be read after the store to buffer `result` has overwritten them; empty if
/// each is read before. Buffers by their numbers.
std::string whyNotOver(const Kernel& kernel, int result, int operand);
/// Makes one buffer of the two; `bindings` are those of the kernel's buffers.
void writeOver(Kernel& kernel, std::vector<ValueKey>& bindings, const ValueKey& result, const ValueKey& operand);

}  // namespace cutaway
