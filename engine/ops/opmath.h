#pragma once
// Pieces that many expansions share: f16, bf16 and 8-bit floats are computed in f32 and rounded once (spec: ops §2.5),
// and the branches of aten.where that are numbers become 0-d tensors.
#include "engine/ops/build.h"

namespace cutaway {

inline DType opmathType(DType dtype) { return isFloating(dtype) && byteSize(dtype) <= 2 ? DType::F32 : dtype; }
/// An operand of a narrow float as f32; anything else as it is.
inline Value toOpmath(const Value& x) { return x ? convert(x, opmathType(x.dtype())) : x; }
/// Operand `position` in the dtype it is computed in.
inline Value opmathIn(const Decomposition& d, size_t position) { return toOpmath(d.in(position)); }
/// A result back in the dtype of the call's result.
inline Value fromOpmath(Decomposition& d, const Value& y) { return convert(y, d.out().dtype); }

/// aten.scalar_tensor as PyTorch's traces write it.
inline Value scalarTensor(GraphBuilder& builder, const Scalar& value, DType dtype, Device device) {
    return builder.call("aten.scalar_tensor.default", {Argument(value)},
                        {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}});
}
inline Value scalarTensor(Decomposition& d, const Scalar& value, const Value& like) {
    return scalarTensor(d.builder(), value, like.dtype(), like.type().device);
}
/// The conjugate of a complex factor of a gradient; a real one as it is.
inline Value conjugated(const Value& x) {
    return x && isComplex(x.dtype()) ? x.builder().call("aten._conj.default", {x}) : x;
}
inline Scalar conjugated(const Scalar& x) {
    const auto* complex = std::get_if<std::complex<double>>(&x);
    return complex ? Scalar(std::conj(*complex)) : x;
}
inline OperandValue conjugated(const OperandValue& x) {
    if (x.value()) return OperandValue(conjugated(x.value()));
    const auto* complex = x.argument().get<std::complex<double>>();
    return complex ? OperandValue(Scalar(std::conj(*complex))) : x;
}
/// Whether a factor is 1; one that is left out counts as 1.
inline bool isOne(const std::optional<Scalar>& factor) {
    if (!factor) return true;
    const auto* complex = std::get_if<std::complex<double>>(&*factor);
    return complex ? *complex == 1.0 : toDouble(*factor) == 1;
}
/// Comparison with a number: compareScalar("gt", x, 0) is aten.gt.Scalar(x, 0).
inline Value compareScalar(std::string_view name, const Value& x, const Scalar& number) {
    return x ? x.builder().call("aten." + std::string(name) + ".Scalar", {x, Argument(number)}) : x;
}
/// number - x, the number staying a literal.
inline Value subtractFrom(const Scalar& number, const Value& x) {
    return x ? x.builder().call("aten.sub.Tensor", {Argument(number), x}) : x;
}

}  // namespace cutaway
