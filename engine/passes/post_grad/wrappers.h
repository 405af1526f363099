#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Functional wrappers around operators that write to their operands become what they stand for: copies of the operands that still
/// need one, and the operator on those. Operands that only the wrapper reads need none. Not functional afterwards, and what writes is
/// read by nobody, so no dead code may be eliminated later. Leaves alone: wrappers whose results are read in another way than one by
/// one; auto_functionalized of the first version around operators that no table has, for it does not say what they write to.
///
/// auto_functionalized and auto_functionalized_v2 (PST-21).
Result<bool> decomposeAutoFunctionalized(Module& module, Rewriter& rewriter);
/// triton_kernel_wrapper_functional becomes triton_kernel_wrapper_mutation (PST-20).
Result<bool> decomposeTritonWrapper(Module& module, Rewriter& rewriter);

}  // namespace cutaway
