#include "engine/tensor/fill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/support/hash.h"
#include "engine/support/random.h"
#include "engine/support/threads.h"

namespace cutaway {

Tensor filledTensor(std::string_view name, uint64_t seed, DType dtype, Dims sizes) {
    Tensor tensor = Tensor::zeros(dtype, std::move(sizes));
    if (!isFloating(dtype) && !isComplex(dtype)) return tensor;
    const uint64_t key = Hasher().add(name).add(seed).finish().low;
    const int64_t count = tensor.numel();
    const bool normal = tensor.rank() >= 2;
    const double scale = normal && count > 0 ? 1 / std::sqrt(static_cast<double>(count / tensor.size(0))) : 0;
    // In pieces, so that a large tensor does not need eight times its memory for a moment.
    constexpr int64_t kPiece = 4096, kNanoseconds = 40;  // a number
    runRange(count, kPiece, threadsWorth(count * kNanoseconds, threadCount()), [&](int64_t begin, int64_t end) {
        Random random(key);
        random.skip(static_cast<uint64_t>(begin) * (normal ? Random::kPerNormal : 1));
        std::vector<double> values;
        for (int64_t at = begin; at < end; at += kPiece) {
            values.resize(static_cast<size_t>(std::min(kPiece, end - at)));
            for (double& value : values) value = normal ? random.normal() * scale : 0.5 + random.uniform();
            storeElements(dtype, static_cast<std::byte*>(tensor.data()) + at * byteSize(dtype), 1,
                          static_cast<int64_t>(values.size()), values.data());
        }
    });
    return tensor;
}

}  // namespace cutaway
