#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Functional wrappers around operators that write to their operands become what they stand for: copies of the operands
/// whose old value somebody still needs (InplaceWrites; PyTorch decides that in its reinplacing pass and notes it), and
/// the operator on those. Where PyTorch's copy is as_strided, clone, as_strided, ours is a clone if that has the same
/// strides. Not functional afterwards, and what writes is read by nobody, so no dead code may be eliminated later.
/// Errors: wrappers whose results are used as a whole; auto_functionalized of the first version around an operator that
/// no table has, unless the types of its results say what it writes to; wrappers around higher-order operators.
///
/// auto_functionalized and auto_functionalized_v2 (PST-21).
Result<bool> decomposeAutoFunctionalized(Module& module, Rewriter& rewriter);
/// triton_kernel_wrapper_functional becomes triton_kernel_wrapper_mutation (PST-20).
Result<bool> decomposeTritonWrapper(Module& module, Rewriter& rewriter);

}  // namespace cutaway
