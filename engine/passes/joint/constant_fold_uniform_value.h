#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Abstract interpretation in which a tensor known to hold one value everywhere is a one-element stand-in (JNT-4).
/// What folds becomes one `full`; then additions of zeros and multiplications by ones go (JNT-4b) and repeated
/// reinterpretations of one tensor are shared (JNT-4c). Leaves alone: unsigned integers, results that are not
/// row-major, random ops, values known only at run time.
Result<bool> constantFoldUniformValue(Module& module, Rewriter& rewriter);

}  // namespace cutaway
