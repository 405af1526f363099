#pragma once
// cuDNN as a library of convolutions on the GPU.
#include "engine/libraries/library.h"

namespace cutaway {

/// Convolutions of one to three dims, transposed ones too, and their gradients, in f64, f32, f16 and bf16; weights are
/// row-major or have their channels last. Operands lie on the GPU; work is enqueued in the stream that a run lends. f32
/// is rounded to TF32 where the call allows it (kAllowTf32), and the algorithms give the same bits each time.
const CtLibrary& cudnnLibrary();

}  // namespace cutaway
