#include "tests/support/bytes.h"

#include <algorithm>

namespace cutaway::testing {

std::shared_ptr<Storage> storageOf(const std::string& bytes) {
    auto* memory = new char[std::max<size_t>(bytes.size(), 1)];
    bytes.copy(memory, bytes.size());
    std::shared_ptr<const void> owner(memory, [](const void* at) { delete[] static_cast<const char*>(at); });
    return Storage::view(memory, bytes.size(), std::move(owner));
}

Tensor rowOf(DType dtype, const std::vector<double>& numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    Tensor tensor = Tensor::zeros(dtype, {count});
    storeElements(dtype, tensor.data(), 1, count, numbers.data());
    return tensor;
}

}  // namespace cutaway::testing
