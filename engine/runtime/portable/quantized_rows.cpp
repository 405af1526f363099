#include "engine/runtime/portable/quantized_rows.h"

#include <algorithm>

#include "engine/support/processor.h"

namespace cutaway::portable {
namespace {

// Inlined into a function for each width of vectors.
[[gnu::always_inline]] inline void scaleLoop(const int32_t* sums, int64_t count, float inputScale, const float* scales,
                                             int64_t scaleStep, const float* bias, float* y) {
    if (scaleStep == 0)
        for (int64_t n = 0; n < count; ++n) y[n] = static_cast<float>(sums[n]) * inputScale * scales[0];
    else
        for (int64_t n = 0; n < count; ++n) y[n] = static_cast<float>(sums[n]) * inputScale * scales[n];
    if (bias != nullptr)
        for (int64_t n = 0; n < count; ++n) y[n] += bias[n];
}
[[gnu::always_inline]] inline void clipLoop(float* y, int64_t count) {
    for (int64_t n = 0; n < count; ++n) y[n] = y[n] < 0.0f ? 0.0f : y[n];
}
[[gnu::always_inline]] inline void roundLoop(const float* y, int64_t count, float scale, float zero, float low,
                                             uint8_t* to) {
    constexpr float kNoFraction = 12582912.0f;  // 1.5 * 2^23: what is added to it becomes an integer
    const float high = low + 255.0f;
    for (int64_t n = 0; n < count; ++n) {
        const float moved = y[n] * scale + zero, above = low < moved ? moved : low;
        const float within = above < high ? above : high;
        to[n] = static_cast<uint8_t>(static_cast<int32_t>((within + kNoFraction) - kNoFraction));
    }
}

#if CUTAWAY_HAS_VECTORS
CUTAWAY_FOR_AVX2 void scaleWide(const int32_t* sums, int64_t count, float inputScale, const float* scales,
                                int64_t scaleStep, const float* bias, float* y) {
    scaleLoop(sums, count, inputScale, scales, scaleStep, bias, y);
}
CUTAWAY_FOR_AVX2 void clipWide(float* y, int64_t count) { clipLoop(y, count); }
CUTAWAY_FOR_AVX2 void roundWide(const float* y, int64_t count, float scale, float zero, float low, uint8_t* to) {
    roundLoop(y, count, scale, zero, low, to);
}
#else
constexpr auto scaleWide = scaleLoop;
constexpr auto clipWide = clipLoop;
constexpr auto roundWide = roundLoop;
#endif

bool isWide() { return widestVectors() != Vectors::Plain; }

}  // namespace

void scaleSums(const int32_t* sums, int64_t count, float inputScale, const float* scales, int64_t scaleStep,
               const float* bias, float* y) {
    if (isWide()) scaleWide(sums, count, inputScale, scales, scaleStep, bias, y);
    else scaleLoop(sums, count, inputScale, scales, scaleStep, bias, y);
}
void clipNegative(float* y, int64_t count) {
    if (isWide()) clipWide(y, count);
    else clipLoop(y, count);
}
void roundToBytes(const float* y, int64_t count, float scale, float zero, float low, uint8_t* to) {
    if (isWide()) roundWide(y, count, scale, zero, low, to);
    else roundLoop(y, count, scale, zero, low, to);
}

}  // namespace cutaway::portable
