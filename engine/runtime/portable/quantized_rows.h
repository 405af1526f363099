#pragma once
// The loops that quantized layers end with, over the channels of one position.
#include <cstdint>

namespace cutaway::portable {

/// y = sums * inputScale * scales [+ bias]. `scales`: one per channel, or the same for all (`scaleStep` 0).
void scaleSums(const int32_t* sums, int64_t count, float inputScale, const float* scales, int64_t scaleStep,
               const float* bias, float* y);
/// Negative ones become 0.
void clipNegative(float* y, int64_t count);
/// Between `low` and low + 255, with halves going to the even number.
void roundToBytes(const float* y, int64_t count, float scale, float zero, float low, uint8_t* to);

}  // namespace cutaway::portable
