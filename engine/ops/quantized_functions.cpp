// Calls of the functions with which PyTorch's compiler lowers quantized products, under the names that FX prints for
// them (passes/post_grad/quantized_calls.h). Each is the operator with the same arguments in the same order; scale and
// zero point of the input are numbers or tensors.
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// The overload for numbers, or for tensors.
Values quantizedCallOf(Decomposition& d, std::string_view packet, std::string_view numbers, std::string_view tensors) {
    return d.call(std::string(packet) + std::string(d.arg("x_scale").node() ? tensors : numbers), d.node().args());
}

constexpr OpDef kQuantizedFunctionsOps[] = {
    {.schema =
         "torch__inductor_fx_passes_quantization_qconv(Tensor x, Any x_scale, Any x_zp, Tensor packed_weight, Tensor w_scale, Tensor? w_zp, Tensor? b, int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? output_dtype, str postop_name, Scalar?[] postop_args, str? postop_algorithm) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) { return quantizedCallOf(d, "onednn.qconv_pointwise.", "default", "tensor"); }},
    {.schema =
         "torch__inductor_fx_passes_quantization_qconv_binary(Tensor x, Any x_scale, Any x_zp, Tensor packed_weight, Tensor w_scale, Tensor? w_zp, Tensor accum, Tensor? b, int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? output_dtype, float accum_scale, int accum_zero_point, str binary_op_name, Scalar? alpha, str? unary_op_name, Scalar?[] unary_op_args, str? unary_op_algorithm) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose =
         [](Decomposition& d) { return quantizedCallOf(d, "onednn.qconv2d_pointwise.", "binary", "binary_tensor"); }},
    {.schema =
         "torch__inductor_fx_passes_quantization_qlinear(Tensor x, Any x_scale, Any? x_zp, Tensor packed_weight, Tensor w_scale, Tensor? w_zp, Tensor? b, float output_scale, int output_zero_point, ScalarType? output_dtype, str postop_name, Scalar?[] postop_args, str postop_algorithm) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose =
         [](Decomposition& d) { return quantizedCallOf(d, "onednn.qlinear_pointwise.", "default", "tensor"); }},
    {.schema =
         "torch__inductor_fx_passes_quantization_qlinear_binary(Tensor x, Any x_scale, Any? x_zp, Tensor packed_weight, Tensor w_scale, Tensor? w_zp, Tensor? x_2, Tensor? b, float output_scale, int output_zero_point, ScalarType? output_dtype, float x2_scale, int x2_zp, str binary_op_name, float alpha, str unary_op_name, Scalar?[] unary_op_args, str unary_op_algorithm) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose =
         [](Decomposition& d) { return quantizedCallOf(d, "onednn.qlinear_pointwise.", "binary", "binary_tensor"); }},
};

}  // namespace

std::span<const OpDef> quantizedFunctionOps() { return kQuantizedFunctionsOps; }

}  // namespace cutaway
