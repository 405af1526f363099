#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Writes higher_order.flex_attention and flex_attention_backward as products, a softmax, and their graphs (the score
/// and the mask of one pair of elements) called inside of a vmap over batches, heads, queries and keys, as eager
/// PyTorch runs them (torch/_higher_order_ops/flex_attention.py, 2.11 to 2.15). What the block mask says of whole
/// blocks follows from the mask's graph, and is not read. Errors: a call that is not written as PyTorch writes it, and
/// gradients of what a score captures.
Result<bool> writeFlexAttention(Module& module, Rewriter& rewriter);

}  // namespace cutaway
