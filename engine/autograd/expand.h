#pragma once
// Expansion of ops into smaller ones by their rows' `decompose` (spec: ops §2.1).
#include <functional>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Replaces composite ops (linear, layer_norm, scaled_dot_product_attention) by what they are shorthand for, before
/// differentiation, until none is left. Each op is one rewrite. Leaves alone: ops whose row says "not handled".
Result<bool> expandComposites(Module& module, Rewriter& rewriter);

/// Expands one call by its op's row; false if the row has no expansion or declines. Spends no fuel.
Result<bool> expandCall(Node& call, Rewriter& rewriter);

/// Which calls are expanded, each as one rewrite; what an expansion makes is asked about in turn.
struct Expanding {
    std::function<bool(const Node& call)> isWanted;
    std::function<std::string(const Node& call)> rule;      // the rewrite's name
    std::function<std::string(const Node& call)> declined;  // why a wanted call has no expansion, as a sentence
};
/// Of the module and its subgraphs.
Result<bool> expandCalls(Module& module, Rewriter& rewriter, const Expanding& how);

/// Decomposes ops that are differentiated as they are (gelu, native_layer_norm, max_pool2d) until only ops remain that
/// later stages know.
Result<bool> decompose(Module& module, Rewriter& rewriter);

/// Decomposes, once PyTorch's passes are done, what only some releases decompose: kernels of ours are made of the
/// smaller operators.
Result<bool> decomposeKept(Module& module, Rewriter& rewriter);

}  // namespace cutaway
