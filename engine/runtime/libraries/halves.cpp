#include "engine/runtime/libraries/halves.h"

#include "engine/runtime/portable/elements.h"
#if defined(__x86_64__)
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

#if defined(__x86_64__)
constexpr int64_t kLanes = 8;
/// Every processor with AVX2 converts halves, too.
bool canConvert() {
    static const bool can = __builtin_cpu_supports("avx2");
    return can;
}
__attribute__((target("avx2,f16c"))) void widenLanes(const uint16_t* halves, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += kLanes)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
}
__attribute__((target("avx2,f16c"))) void narrowLanes(const float* from, int64_t count, uint16_t* halves) {
    for (int64_t i = 0; i < count; i += kLanes)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
int64_t inLanes(int64_t count) { return canConvert() ? count / kLanes * kLanes : 0; }
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
