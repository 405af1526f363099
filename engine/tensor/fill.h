#pragma once
// Synthetic weights for tensors whose data a file does not hold: the same values for the same name and seed, on every
// machine.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "engine/support/random.h"
#include "engine/support/threads.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Floats of two and more dims are normal, scaled by the square root of the elements per row, so that products keep
/// their size; others lie in [0.5, 1.5), which suits scales, variances and biases alike. Integers and bools are zero:
/// any other number might be a wrong index.
Tensor filledTensor(std::string_view name, uint64_t seed, DType dtype, Dims sizes);

/// Fills `into` with next(random) per element: the values of one sequential pass from `begun`, whatever the threads.
/// `each`: numbers of the generator that next() takes. In pieces, so that doubles for all elements are never held.
template <class Next>
void storeDrawn(DType dtype, std::span<std::byte> into, const Random& begun, uint64_t each, Next&& next) {
    constexpr int64_t kPiece = 512, kNanoseconds = 40;  // per number
    const int64_t bytes = byteSize(dtype), all = std::ssize(into) / bytes;
    runRange(all, kPiece, threadsWorth(all * kNanoseconds, threadCount()), [&](int64_t begin, int64_t end) {
        Random random = begun;
        random.skip(static_cast<uint64_t>(begin) * each);
        std::array<double, kPiece> numbers;
        for (int64_t i = begin; i < end; i += kPiece) {
            const int64_t count = std::min(kPiece, end - i);
            for (int64_t k = 0; k < count; ++k) numbers[static_cast<size_t>(k)] = next(random);
            storeElements(dtype, into.data() + i * bytes, 1, count, numbers.data());
        }
    });
}

}  // namespace cutaway
