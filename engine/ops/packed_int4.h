#pragma once
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Matrices of 4-bit numbers as PyTorch's CPU kernels read them (aten._convert_weight_to_int4pack_for_cpu): two numbers
/// a byte, in blocks of 64 rows that lie column by column, 16 rows in the low halves of 16 bytes with the 32nd next
/// ones in the high halves; rows that fill no block lie in pairs. That is the layout of processors with AVX-512; other
/// processors have blocks of other sizes, and a file does not say which it was made on.

/// i32[n, k] of numbers 0 to 15, contiguous, k even, to u8[n, k / 2].
Tensor packInt4(const Tensor& numbers);
/// The other way round.
Tensor unpackInt4(const Tensor& packed);

}  // namespace cutaway
