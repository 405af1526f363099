#include "engine/runtime/libraries/attention_rows.h"

#include <cstring>
#include <limits>

#include "engine/support/processor.h"

namespace cutaway {
namespace {

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));

// Inlined into functions that are compiled for one processor each. Vectors are passed by reference, since how they are
// passed by value depends on the processor.
#define CUTAWAY_ROWS static inline __attribute__((always_inline))

CUTAWAY_ROWS void fill(Floats& to, float value) {
    for (int64_t i = 0; i < kLanes; ++i) to[i] = value;
}
/// Up to 16 elements, and `rest` in the lanes behind them.
CUTAWAY_ROWS void load(Floats& to, const float* from, int64_t count, float rest) {
    if (count >= kLanes) {
        std::memcpy(&to, from, sizeof to);
        return;
    }
    fill(to, rest);
    std::memcpy(&to, from, static_cast<size_t>(count) * sizeof(float));
}
CUTAWAY_ROWS void store(float* to, const Floats& from, int64_t count) {
    std::memcpy(to, &from, static_cast<size_t>(count >= kLanes ? kLanes : count) * sizeof(float));
}
CUTAWAY_ROWS void choose(Floats& to, const Bits& condition, const Floats& yes, const Floats& no) {
    Bits a, b;
    std::memcpy(&a, &yes, sizeof a);
    std::memcpy(&b, &no, sizeof b);
    a = (a & condition) | (b & ~condition);
    std::memcpy(&to, &a, sizeof a);
}

/// exp(x) for x up to 88, by a polynomial of what is left of x beyond multiples of log 2; within 2 ulp. NaN stays NaN.
CUTAWAY_ROWS void exponential(Floats& x) {
    constexpr float kRound = 12582912;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    Floats shifted = x * 1.44269504f + kRound;
    const Floats n = shifted - kRound;
    Floats r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    Bits power;
    std::memcpy(&power, &shifted, sizeof power);
    power = (power - 0x4B400000u + 127u) << 23;
    Floats scale, zero;
    std::memcpy(&scale, &power, sizeof scale);
    fill(zero, 0);
    const Bits tiny = (Bits)(x < -87.3f);
    p = p * scale;
    choose(x, tiny, zero, p);
}

CUTAWAY_ROWS float sumOf(const Floats& lanes) {
    float parts[kLanes];
    std::memcpy(parts, &lanes, sizeof parts);
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
        for (int64_t i = 0; i < width; ++i) parts[i] += parts[i + width];
    return parts[0];
}

/// x = x * factor + (mask - from), rounded once behind the difference where the processor has such an instruction.
CUTAWAY_ROWS void score(Floats& x, const float* mask, float factor, float from, int64_t count) {
    Floats m;
    if (mask == nullptr) {
        fill(m, -from);
    } else {
        load(m, mask, count, 0);
        m = m - from;
    }
    x = x * factor + m;
}
CUTAWAY_ROWS float largestBody(const float* values, const float* mask, float factor, int64_t count) {
    Floats largest, nothing;
    fill(nothing, -std::numeric_limits<float>::infinity());
    largest = nothing;
    for (int64_t i = 0; i < count; i += kLanes) {
        Floats x;
        load(x, values + i, count - i, 0);
        score(x, mask ? mask + i : nullptr, factor, 0, count - i);
        for (int64_t lane = count - i; lane < kLanes; ++lane) x[lane] = nothing[0];
        choose(largest, (Bits)(x > largest), x, largest);
    }
    float result = largest[0];
    for (int64_t i = 1; i < kLanes; ++i) result = largest[i] > result ? largest[i] : result;
    return result;
}
CUTAWAY_ROWS float exponentialsBody(float* values, const float* mask, float factor, float largest, int64_t count) {
    Floats sum;
    fill(sum, 0);
    for (int64_t i = 0; i < count; i += kLanes) {
        Floats x;
        load(x, values + i, count - i, 0);
        score(x, mask ? mask + i : nullptr, factor, largest, count - i);
        exponential(x);
        store(values + i, x, count - i);
        for (int64_t lane = count - i; lane < kLanes; ++lane) x[lane] = 0;
        sum = sum + x;
    }
    return sumOf(sum);
}
CUTAWAY_ROWS void multiplyBody(float* values, float factor, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}
CUTAWAY_ROWS void gradientsBody(float* scores, float* gradients, const float* mask, float factor, float logSum,
                                float dot, int64_t count) {
    for (int64_t i = 0; i < count; i += kLanes) {
        Floats p, d;
        load(p, scores + i, count - i, 0);
        load(d, gradients + i, count - i, 0);
        score(p, mask ? mask + i : nullptr, factor, logSum, count - i);
        exponential(p);
        d = p * (d - dot) * factor;
        store(scores + i, p, count - i);
        store(gradients + i, d, count - i);
    }
}
CUTAWAY_ROWS float dotBody(const float* a, const float* b, int64_t count) {
    Floats sum;
    fill(sum, 0);
    for (int64_t i = 0; i < count; i += kLanes) {
        Floats x, y;
        load(x, a + i, count - i, 0);
        load(y, b + i, count - i, 0);
        sum = sum + x * y;
    }
    return sumOf(sum);
}

#define CUTAWAY_ROWS_FOR(name, target)                                                                                 \
    target float largest##name(const float* v, const float* m, float f, int64_t n) { return largestBody(v, m, f, n); } \
    target float exponentials##name(float* v, const float* m, float f, float largest, int64_t n) {                     \
        return exponentialsBody(v, m, f, largest, n);                                                                  \
    }                                                                                                                  \
    target void multiply##name(float* v, float f, int64_t n) { multiplyBody(v, f, n); }                                \
    target void gradients##name(float* s, float* g, const float* m, float f, float l, float d, int64_t n) {            \
        gradientsBody(s, g, m, f, l, d, n);                                                                            \
    }                                                                                                                  \
    target float dot##name(const float* a, const float* b, int64_t n) { return dotBody(a, b, n); }                     \
    constexpr RowFunctions k##name = {largest##name, exponentials##name, multiply##name, gradients##name, dot##name};

CUTAWAY_ROWS_FOR(Plain, )
#if CUTAWAY_HAS_VECTORS
CUTAWAY_ROWS_FOR(Avx2, CUTAWAY_FOR_AVX2)
CUTAWAY_ROWS_FOR(Avx512, CUTAWAY_FOR_AVX512)
#else
constexpr const RowFunctions &kAvx2 = kPlain, &kAvx512 = kPlain;
#endif

}  // namespace

const RowFunctions& rowFunctions() { return forThisProcessor(kPlain, kAvx2, kAvx512); }

}  // namespace cutaway
