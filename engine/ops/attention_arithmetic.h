#pragma once
// The attention kernels as products and elementwise calls, for devices that have no kernel of their own for them.
#include "engine/ops/build.h"

namespace cutaway {

/// softmax(query keyᵀ scale + bias) value and the logarithms of the sums of exponentials, as any of the forward kernels
/// gives them; scores are f32 for halves. Declines dropout, whose random numbers only the kernel knows.
Values attentionArithmetic(Decomposition& d);
/// The gradients of query, key and value, and of the bias where it is asked for.
Values attentionBackwardArithmetic(Decomposition& d);

}  // namespace cutaway
