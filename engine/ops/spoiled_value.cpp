#include "engine/ops/spoiled_value.h"

#include <cmath>
#include <limits>

namespace cutaway {
namespace {

/// Packed, of a dtype that converts to that of `tensor`.
Tensor spoiled(FaultEffect effect, const Tensor& tensor) {
    const bool real = isFloating(tensor.dtype()) || isComplex(tensor.dtype());
    if (real && effect == FaultEffect::Nan)
        return Tensor::full(DType::F64, tensor.sizes(), Scalar(std::numeric_limits<double>::quiet_NaN()));
    Tensor numbers = tensor.to(real ? DType::F64 : DType::I64).clone();
    const auto count = static_cast<size_t>(numbers.numel());
    if (real)
        for (double& x : std::span(numbers.as<double>(), count)) x = 1 + 2 * std::abs(x);
    else
        for (int64_t& x : std::span(numbers.as<int64_t>(), count)) x = x == 0;
    return numbers;
}

}  // namespace

void spoilMemory(FaultEffect effect, Tensor& tensor) {
    if (effect == FaultEffect::Outside && tensor.defined()) {
        constexpr size_t kBytes = 64 << 10;  // NaN in every dtype that has one
        auto* const end = static_cast<std::byte*>(tensor.data()) +
                          extent(tensor.sizes(), tensor.strides()) * byteSize(tensor.dtype());
        // Not by memset, whose bounds a checking build knows.
        for (volatile std::byte* at = end; at != end + kBytes; ++at) *at = std::byte{0xff};
    }
    if (effect != FaultEffect::Wrong && effect != FaultEffect::Nan) return;
    const bool real = tensor.defined() && (isFloating(tensor.dtype()) || isComplex(tensor.dtype()));
    if (tensor.defined() && (real || effect == FaultEffect::Wrong)) copyInto(tensor, spoiled(effect, tensor));
}

void spoilValue(const Op& op, FaultEffect effect, TensorList& values) {
    if (effect == FaultEffect::None || effect == FaultEffect::Invalid) return;
    for (Tensor& tensor : values) {
        if (tensor.defined() && !op.mutates() && effect != FaultEffect::Outside) {
            const std::shared_ptr<Storage> storage = Storage::allocate(tensor.storage()->size());
            std::memcpy(storage->data(), std::as_const(*tensor.storage()).data(), storage->size());
            tensor =
                Tensor(storage, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset(), tensor.device());
        }
        spoilMemory(effect, tensor);
    }
}

}  // namespace cutaway
