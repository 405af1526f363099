#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Folds constants, computing a tensor that holds the same value everywhere with one element (JNT-4). What folds
/// becomes one `full`; then additions of zeros and multiplications by ones go (JNT-4b), and equal dtype views of one
/// tensor are shared (JNT-4c). Leaves alone: unsigned integers, results that are not row-major, random ops, values
/// known only at run time.
Result<bool> constantFoldUniformValue(Module& module, Rewriter& rewriter);

}  // namespace cutaway
