#pragma once
// f16 and bf16 are computed in f32 and rounded once (spec: ops §2.5).
#include "engine/ops/build.h"

namespace cutaway {

inline DType opmathType(DType dtype) { return isHalf(dtype) ? DType::F32 : dtype; }
/// A half operand as f32; anything else as it is.
inline Value toOpmath(const Value& x) { return x && isHalf(x.dtype()) ? convert(x, DType::F32) : x; }
/// A result back in the dtype of the call's result.
inline Value fromOpmath(Decomposition& d, const Value& y) { return convert(y, d.out().dtype); }

}  // namespace cutaway
