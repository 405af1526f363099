#pragma once
// Scaled dot product attention over concrete tensors [batch, heads, length, dim], forward and backward.
#include <optional>

#include "engine/tensor/tensor.h"

namespace cutaway {

struct AttentionCall {
    Tensor query, key, value;
    Tensor mask;                  // added to the scores; undefined = none
    bool causal = false;          // row i sees columns 0..i
    std::optional<double> scale;  // absent: 1 / sqrt(dim)
};

/// output = softmax(query keyᵀ scale + mask) value and, per row, the logarithm of the sum of exponentials. Fewer key
/// heads than query heads are shared by equal groups. A row that sees nothing gives zeros. Dropout is not part of it.
void attend(const AttentionCall& call, Tensor& output, Tensor& logSumExp);
/// Gradients of query, key and value, each of the operand's shape.
void attendBackward(const AttentionCall& call, const Tensor& gradient, const Tensor& output, const Tensor& logSumExp,
                    Tensor& query, Tensor& key, Tensor& value);

}  // namespace cutaway
