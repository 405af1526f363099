#include "engine/runtime/libraries/halves.h"

#include "engine/runtime/portable/elements.h"
#include "engine/support/processor.h"
#if CUTAWAY_HAS_VECTORS
#include <immintrin.h>
#endif

namespace cutaway {
namespace {

void widenOneByOne(const uint16_t* halves, int64_t count, float* to) {
    for (int64_t i = 0; i < count; ++i) to[i] = portable::wide(portable::Half{halves[i]});
}
void narrowOneByOne(const float* from, int64_t count, uint16_t* halves) {
    for (int64_t i = 0; i < count; ++i) halves[i] = portable::toHalf(from[i]).bits;
}

#if CUTAWAY_HAS_VECTORS
constexpr int64_t kHalfLanes = 8;
CUTAWAY_FOR_AVX2 void widenLanes(const uint16_t* halves, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += kHalfLanes)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
}
CUTAWAY_FOR_AVX2 void narrowLanes(const float* from, int64_t count, uint16_t* halves) {
    for (int64_t i = 0; i < count; i += kHalfLanes)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
int64_t inLanes(int64_t count) { return widestVectors() == Vectors::Plain ? 0 : count / kHalfLanes * kHalfLanes; }
#else
int64_t inLanes(int64_t) { return 0; }
void widenLanes(const uint16_t*, int64_t, float*) {}
void narrowLanes(const float*, int64_t, uint16_t*) {}
#endif

}  // namespace

void widenHalves(const void* halves, int64_t count, float* to) {
    const auto* const from = static_cast<const uint16_t*>(halves);
    const int64_t whole = inLanes(count);
    widenLanes(from, whole, to);
    widenOneByOne(from + whole, count - whole, to + whole);
}
void narrowToHalves(const float* from, int64_t count, void* halves) {
    auto* const to = static_cast<uint16_t*>(halves);
    const int64_t whole = inLanes(count);
    narrowLanes(from, whole, to);
    narrowOneByOne(from + whole, count - whole, to + whole);
}

}  // namespace cutaway
