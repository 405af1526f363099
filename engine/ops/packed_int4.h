#pragma once
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Matrices of 4-bit numbers as PyTorch's CPU kernels read them (aten._convert_weight_to_int4pack_for_cpu): two numbers
/// a byte, in blocks of rows that lie column by column. A file does not say which processor it was packed on.
enum class Int4Packing : uint8_t {
    Avx512,  // blocks of 64 rows: 16 in the low halves of 16 bytes, with the 32nd next ones in the high halves
    Avx2,    // blocks of 32 rows: 16 in the low halves of 16 bytes, with the 16th next ones in the high halves
    Pairs,   // other processors: neighbouring rows; rows that fill no block lie so in the other packings, too
};
/// What PyTorch takes here: that of ATEN_CPU_CAPABILITY (avx512, avx2, default), else of this processor.
Int4Packing int4Packing();
/// As that variable names it.
const char* name(Int4Packing packing);

/// i32[n, k] of numbers 0 to 15, contiguous, k even, to u8[n, k / 2].
Tensor packInt4(const Tensor& numbers, Int4Packing packing = int4Packing());
/// The other way round.
Tensor unpackInt4(const Tensor& packed, Int4Packing packing = int4Packing());

}  // namespace cutaway
