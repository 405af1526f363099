#pragma once
// What attention does with a row of scores, in vectors as wide as the processor has.
#include <cstdint>

namespace cutaway {

struct RowFunctions {
    /// The largest of values * factor + mask (null: none); minus infinity if there is nothing but NaN.
    float (*largest)(const float* values, const float* mask, float factor, int64_t count);
    /// values = exp(values * factor + (mask - largest)): large scores are not rounded before they meet the largest.
    /// Their sum, added up in an order that depends on `count` alone.
    float (*exponentials)(float* values, const float* mask, float factor, float largest, int64_t count);
    void (*multiply)(float* values, float factor, int64_t count);
    /// Of the backward: scores = exp(scores * factor + (mask - logSum)), which are the weights again, and
    /// gradients = weights * (gradients - dot) * factor.
    void (*gradients)(float* scores, float* gradients, const float* mask, float factor, float logSum, float dot,
                      int64_t count);
    float (*dot)(const float* a, const float* b, int64_t count);
};
/// Those for this processor.
const RowFunctions& rowFunctions();

}  // namespace cutaway
