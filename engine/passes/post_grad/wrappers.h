#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A functional wrapper around an operator that writes to its operands becomes copies of those operands whose old value
/// is still needed (InplaceWrites; PyTorch decides that in its reinplacing pass), and the operator on the copies. Where
/// PyTorch copies by as_strided, clone, as_strided, ours clones if that gives the same strides. The graph is not
/// functional afterwards, and nothing reads the calls that write, so dead code may not be eliminated later. Errors:
/// wrappers whose results are used as a whole; auto_functionalized of the first version around an operator that no
/// table has, unless the types of its results say what it writes to; wrappers around higher-order operators.
///
/// auto_functionalized and auto_functionalized_v2 (PST-21).
Result<bool> decomposeAutoFunctionalized(Module& module, Rewriter& rewriter);
/// triton_kernel_wrapper_functional becomes triton_kernel_wrapper_mutation (PST-20).
Result<bool> decomposeTritonWrapper(Module& module, Rewriter& rewriter);

}  // namespace cutaway
