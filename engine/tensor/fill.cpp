#include "engine/tensor/fill.h"

#include <cmath>

#include "engine/support/hash.h"
#include "engine/support/random.h"

namespace cutaway {

Tensor filledTensor(std::string_view name, uint64_t seed, DType dtype, Dims sizes) {
    Tensor tensor = Tensor::zeros(dtype, std::move(sizes));
    if (!isFloating(dtype) && !isComplex(dtype)) return tensor;
    Random random(Hasher().add(name).add(seed).finish().low);
    const int64_t count = tensor.numel();
    const double scale =
        tensor.rank() >= 2 && count > 0 ? 1 / std::sqrt(static_cast<double>(count / tensor.size(0))) : 0;
    // In pieces, so that a large tensor does not need eight times its memory for a moment.
    constexpr int64_t kPiece = 4096;
    std::vector<double> values;
    for (int64_t at = 0; at < count; at += kPiece) {
        values.resize(static_cast<size_t>(std::min(kPiece, count - at)));
        for (double& value : values) value = tensor.rank() >= 2 ? random.normal() * scale : 0.5 + random.uniform();
        storeElements(dtype, static_cast<std::byte*>(tensor.data()) + at * byteSize(dtype), 1,
                      static_cast<int64_t>(values.size()), values.data());
    }
    return tensor;
}

}  // namespace cutaway
