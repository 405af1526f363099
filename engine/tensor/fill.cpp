#include "engine/tensor/fill.h"

#include <cmath>

#include "engine/support/hash.h"

namespace cutaway {

Tensor filledTensor(std::string_view name, uint64_t seed, DType dtype, Dims sizes) {
    Tensor tensor = Tensor::zeros(dtype, std::move(sizes));
    if (!isFloating(dtype) && !isComplex(dtype)) return tensor;
    const uint64_t key = Hasher().add(name).add(seed).finish().low;
    const int64_t count = tensor.numel();
    const bool normal = tensor.rank() >= 2;
    const double scale = normal && count > 0 ? 1 / std::sqrt(static_cast<double>(count / tensor.size(0))) : 0;
    const std::span into(static_cast<std::byte*>(tensor.data()), tensor.bytes());
    storeDrawn(dtype, into, Random(key), normal ? Random::kPerNormal : 1,
               [&](Random& random) { return normal ? random.normal() * scale : 0.5 + random.uniform(); });
    return tensor;
}

}  // namespace cutaway
