#pragma once
// Which numbers a dtype can hold, as PyTorch asks before it writes one (c10::checked_convert).
#include "engine/ir/infer.h"

namespace cutaway {

/// The largest finite number of a floating dtype; infinity for those of eight bits, which saturate.
double largestOf(DType dtype);
/// True if writing the number into the dtype changes more than its precision: beyond the largest, or not finite in an
/// integer. Negative integers down to minus the largest wrap around in unsigned dtypes, as in PyTorch.
bool overflows(const Scalar& number, DType dtype);
/// An error where the literal number at a parameter does not fit the dtype that it is written into.
Result<void> checkNumber(const InferContext& c, std::string_view param, DType dtype);

}  // namespace cutaway
