// _weight_norm_interface, the form of weight_norm in PyTorch's graphs for the CPU: the scaled weight together with the
// norms, which the backward reads.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// All dims but `dim`, each position of which has a norm; nothing if that is neither the first nor the last.
std::optional<std::vector<int64_t>> otherDims(Decomposition& d, const Value& v) {
    const auto dim = read(d, d.integer("dim", 0));
    if (!dim) return std::nullopt;
    if (v.rank() == 0 || (*dim != 0 && *dim != v.rank() - 1)) {
        refuse(d, "the dim is the first or the last of " + v.type().text() + ", not " + std::to_string(*dim));
        return std::nullopt;
    }
    std::vector<int64_t> others;
    for (int64_t i = 0; i < v.rank(); ++i)
        if (i != *dim) others.push_back(i);
    return others;
}
Value nothing(Decomposition& d) { return Value(d.builder(), nullptr); }

/// g v / |v| and |v|; norms of bfloat16 are float32.
Values scaledWeight(Decomposition& d) {
    const Value v = d.in("v"), g = d.in("g");
    if (!isFloating(v.dtype()) || v.dtype() != g.dtype()) return refuse(d, "needs floating-point tensors of one dtype");
    const auto others = otherDims(d, v);
    if (!others) return {nothing(d), nothing(d)};
    const Value wide = convert(v, v.dtype() == DType::BF16 ? DType::F32 : v.dtype());
    const Value squares = d.call("aten.pow.Tensor_Scalar", {wide, int64_t{2}});
    const Value lengths = d.call("aten.pow.Tensor_Scalar", {sum(squares, *others, true), 0.5});
    if (!(lengths.sizes() == g.sizes()))
        return refuse(d, "g has one number for each length, as " + lengths.type().text() + ", not " + g.type().text());
    return {v * (g / convert(lengths, v.dtype())), lengths};
}
Values scaledWeightBackward(Decomposition& d) {
    const Value dw = d.in("grad_w"), v = d.in("saved_v"), g = d.in("saved_g"), lengths = d.in("saved_norms");
    if (!isFloating(v.dtype()) || v.dtype() != g.dtype() || v.dtype() != dw.dtype())
        return refuse(d, "needs floating-point tensors of one dtype");
    const auto others = otherDims(d, v);
    if (!others) return {nothing(d), nothing(d)};
    if (!(dw.sizes() == v.sizes()) || !(g.sizes() == lengths.sizes())) return refuse(d, "the shapes do not fit");
    const DType wide = v.dtype() == DType::BF16 ? DType::F32 : v.dtype();
    const Value x = convert(v, wide), dy = convert(dw, wide), n = convert(lengths, wide);
    const Value dots = sum(x * dy, *others, true);
    const Value along = x * (dots / (n * n));
    return {convert(convert(g, wide) / n * (dy - along), v.dtype()), convert(dots / n, g.dtype())};
}

constexpr OpDef kWeightNormOps[] = {
    shorthand("aten._weight_norm_interface.default(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", scaledWeight,
              "f32[3, 4], f32[3, 1]\nf32[3, 4, 2], f32[1, 1, 2], 2\nf64[3, 4], f64[3, 1]\nbf16[3, 4], bf16[3, 1]"),
    shorthand(
        "aten._weight_norm_interface_backward.default(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> "
        "(Tensor, Tensor)",
        scaledWeightBackward,
        "f32[3, 4], f32[3, 4], f32[3, 1], f32[3, 1]>0, 0\nf32[3, 4, 2], f32[3, 4, 2], f32[1, 1, 2], f32[1, 1, 2]>0, 2"),
};

}  // namespace

std::span<const OpDef> weightNormOps() { return kWeightNormOps; }

}  // namespace cutaway
