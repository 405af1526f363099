#pragma once
// How random numbers are drawn: by Philox under the run's key, so that a run can be repeated. Shared by the ops that
// draw.
#include "engine/ops/eval.h"
#include "engine/ops/opmath.h"
#include "engine/ops/philox.h"

namespace cutaway {

/// A row-major tensor of these sizes. Errors: a negative one.
inline Result<ValueType> contiguousOf(const InferContext& c, SymDims sizes, DType dtype, Device device) {
    for (const SymInt& size : sizes)
        if (size.isInt() && size.value() < 0) return c.fail("negative size " + size.text());
    return ValueType(TensorType::contiguous(dtype, std::move(sizes), device));
}
/// The first half of what Philox gives, as one number.
inline uint64_t wideBits(const std::array<uint32_t, 4>& bits) { return static_cast<uint64_t>(bits[0]) << 32 | bits[1]; }
/// 0 <= u < 1 with 53 bits.
inline double uniform(const std::array<uint32_t, 4>& bits) {
    return static_cast<double>(wideBits(bits) >> 11) * 0x1.0p-53;
}
/// Box-Muller.
inline double normal(const std::array<uint32_t, 4>& bits) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(bits)));
    return radius * std::cos(6.283185307179586 * uniform({bits[2], bits[3], 0, 0}));
}
/// Fills a fresh tensor of result `number` with draw(bits) for each element, row-major. Floats are kept below `below`
/// after rounding to the result's dtype: a uniform number may not round up to 1.
template <class Draw>
Tensor drawn(const EvalContext& c, uint64_t key, uint64_t stream, Draw draw, size_t number = 0) {
    Tensor packed = Tensor::empty(c.resultType(number).dtype, c.resultSizes(number));
    for (int64_t i = 0; i < packed.numel(); ++i) {
        const auto value = draw(philox(key, static_cast<uint64_t>(i), stream));
        storeElements(packed.dtype(), static_cast<std::byte*>(packed.data()) + i * byteSize(packed.dtype()), 1, 1,
                      &value);
    }
    Tensor out = c.result(number);
    copyInto(out, packed);
    return out;
}
template <class Draw>
Tensor drawnFromRun(const EvalContext& c, Draw draw) {
    RandomState& state = c.values().random();
    return drawn(c, state.seed, state.draws++, draw);
}
/// How many integers there are from `low` to below `high`; unsigned, since it may exceed int64.
inline uint64_t integersBetween(int64_t low, int64_t high) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
}
/// One of `count` integers from `low` on; a count of 0 stands for 2^64.
inline int64_t integerFrom(const std::array<uint32_t, 4>& bits, int64_t low, uint64_t count) {
    const uint64_t wide = wideBits(bits);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (count == 0 ? wide : wide % count));
}
inline int64_t integerBetween(const std::array<uint32_t, 4>& bits, int64_t low, int64_t high) {
    return integerFrom(bits, low, integersBetween(low, high));
}

}  // namespace cutaway
