#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A product of small operands may be huge (the logits of a large vocabulary). It is computed a few rows at a time,
/// together with what follows from it (their loss, their gradient): that part becomes a subgraph that is called once
/// per chunk (spec: passes §2.2, step 7). Off by default (`--enable
/// auto_chunker=num_chunk:8,output_size_threshold:1048576,amplify_ratio_threshold:8`). Leaves alone: graphs without
/// gradients that come in, and parts with an operator that no rule of chunk_plan.cpp covers; explaining the rules below
/// at the product says which. Sums over chunks are kept in the dtype of the value, single numbers in f32 at least, as
/// in PyTorch.
Result<bool> autoChunker(Module& module, Rewriter& rewriter);
/// Rules that find products and whose condition says why one is not computed in chunks; for explaining, never applied.
std::span<const Rule> autoChunkerRules();

}  // namespace cutaway
