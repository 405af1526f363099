#pragma once
#include "engine/passes/joint/traced_rules.h"

namespace cutaway {

/// Attention written as products and a softmax becomes scaled_dot_product_attention (spec: passes §4), which then
/// expands to what suits the device; in training forms its backward as well. Rows are named by PyTorch's numbers.
/// Leaves alone: f32 on the GPU, whose products PyTorch fuses only when it may round them to tf32. In PyTorch's order
/// of registration; traced on first use.
const TracedRules& attentionFormulas(TracedForms forms = {});

}  // namespace cutaway
