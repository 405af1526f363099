#pragma once
// cuBLASLt as a library of matrix products on the GPU.
#include "engine/libraries/library.h"

namespace cutaway {

/// mm, addmm, bmm and baddbmm of f64, f32, f16 and bf16, whose operands are row-major or column-major. Operands lie on
/// the GPU; work is enqueued in the stream that a run lends. f32 is rounded to TF32 where the call
/// allows it (kAllowTf32).
const CtLibrary& cublasLtLibrary();

}  // namespace cutaway
