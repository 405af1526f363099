#pragma once
// Group and batch fusion (PRE-8; spec: passes §1.5): equal calls that do not depend on one another become one call on
// their stacked operands. Optional; the settings are min_fuse_set_size (5), max_fuse_set_size (300),
// max_fuse_search_depth (5), fuse_nodes_with_same_users and fuse_nodes_with_same_parent (off). Leaves alone, unless
// CompileRequest::parity asks for PyTorch's behaviour: calls with positional settings, which the batched call would
// lose, and relu in place, which would no longer write to its operand.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The rule is that of the pass (Rewriter::pass): batch_linear_lhs, batch_linear, batch_layernorm,
/// batch_{tanh,sigmoid,relu,detach,nan_to_num,clamp,dropout} on Python's calls; batch_linear_post_grad and
/// batch_aten_{tanh,sigmoid,relu,add,sub,mul,div} on ATen's; and group_linear, which calls a library that no public
/// build has (fbgemm.gmm), so it is computed here as single products.
Result<bool> batchFusion(Module& module, Rewriter& rewriter);

}  // namespace cutaway
