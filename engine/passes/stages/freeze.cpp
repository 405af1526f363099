// Parameters become constants, and all that depends on them alone is folded (spec: freezing). Two stages, since PyTorch
// decides on layouts between the joint passes and freezing itself.
#include "engine/passes/freezing/binary_folding.h"
#include "engine/passes/freezing/concat_products.h"
#include "engine/passes/freezing/constant_fold.h"
#include "engine/passes/freezing/freeze_parameters.h"
#include "engine/passes/freezing/layout.h"
#include "engine/passes/freezing/options.h"
#include "engine/passes/freezing/pack_weights.h"
#include "engine/passes/freezing/quant_concat.h"
#include "engine/passes/freezing/quant_post_ops.h"
#include "engine/passes/freezing/quant_prepack.h"
#include "engine/passes/freezing/simple_rules.h"
#include "engine/passes/partition/merge_equal_calls.h"
#include "engine/passes/post_grad/simple_passes.h"
#include "engine/passes/stage.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {
namespace {

constexpr CodeRewrite kLayoutRewrites[] = {
    {"keep_stride_order", "What is returned, or read by position, keeps its strides", "aten.as_strided*, output"},
    {"channels_last_weight", "A convolution with channels last reads its weight in that layout",
     "aten.convolution.default"}};
constexpr CodeRewrite kFreezeRewrites[] = {
    {"freeze_parameter", "A parameter is a constant of the graph, not an input", "placeholder"}};
constexpr CodeRewrite kFoldRewrites[] = {
    {"fold_constant", "What depends on constants alone is computed once for all runs", "call"},
    {"drop_constant", "A constant that nobody reads goes", "get_attr"}};
constexpr CodeRewrite kBinaryRewrites[] = {
    {"binary_folding", "A constant that is added or multiplied becomes part of weight and bias",
     "aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.convolution.default, aten.mm.default, aten.addmm.default"}};
constexpr CodeRewrite kRestoreRewrites[] = {{"restore_precision",
                                             "Widening a value and rounding it back gives the value",
                                             "prims.convert_element_type.default"}};
constexpr CodeRewrite kConcatRewrites[] = {
    {"matmul_fuse_pattern", "Three products of one tensor are one product", "aten.mm.default"},
    {"matmul_fuse_pattern_two", "Two products of one tensor are one product", "aten.mm.default"},
    {"addmm_fuse_pattern_second", "Three products of one tensor with biases are one", "aten.addmm.default"}};
constexpr CodeRewrite kMergePackedRewrites[] = {
    {"merge_packed_weights", "A weight that is packed twice in the same way is packed once",
     "mkldnn._reorder_*, mkl._mkl_reorder_linear_weight, aten.permute.default"}};
constexpr CodeRewrite kPromoteRewrites[] = {
    {"dequant_promotion", "Each reader of a dequantized tensor dequantizes it itself",
     "quantized_decomposed.dequantize_per_tensor.*, prims.convert_element_type.default, aten.reshape.default"}};
constexpr std::string_view kProducts = "aten.mm.default, aten.addmm.default, aten.bmm.default";
constexpr CodeRewrite kWeightOnlyRewrites[] = {
    {"int8_woq_concat_linear", "Three products of one tensor with weights of eight bits are one product",
     "aten.mm.default"}};
constexpr CodeRewrite kQuantizedPackRewrites[] = {
    {"qconv_weight_prepack", "A convolution of dequantized operands convolves the integers",
     "aten.convolution.default"},
    {"qlinear_weight_prepack", "A product of dequantized operands multiplies the integers", kProducts}};
constexpr CodeRewrite kDynamicPackRewrites[] = {
    {"linear_dynamic_fp16_weight_prepack",
     "A product with an fp16-rounded weight becomes one call that keeps the weight in fp16", kProducts},
    {"smooth_quant_int_mm", "An int8 product whose sums are scaled afterwards becomes one call",
     "aten._int_mm.default"}};
constexpr CodeRewrite kSortRewrites[] = {{"stable_topological_sort", "Every node stands behind its operands"}};

constexpr Dependency kFoldAfter[] = {
    {"replace_params_with_constants", "as long as weights are inputs nothing depends on constants alone"}};

constexpr Dependency kPackLinearsAfter[] = {
    {"concat_products", "joined products are packed as one, and packed ones are not joined"}};
constexpr Dependency kRecoverAfter[] = {{"pack_linears", "it looks for packed linear layers"}};
constexpr Dependency kQuantizedPackAfter[] = {{"dequant_promotion", "an operand with other readers stays as it is"}};
constexpr Dependency kPostOpsAfter[] = {{"quantized_weight_prepack", "it looks for products of integers"},
                                        {"dynamic_weight_prepack", "it looks for products of integers"}};
constexpr Dependency kFunctionsAfter[] = {{"quantized_output_fusion", "what is quantized in the end is matched whole"}};
constexpr Dependency kSumsAfter[] = {{"quantized_function_fusion", "a function behind a sum is matched with it"}};

constexpr Pass kFold{.name = "constant_fold",
                     .summary = "Computes what depends on constants alone",
                     .run = foldConstants,
                     .after = kFoldAfter,
                     .rewrites = kFoldRewrites};
constexpr Pass kRounds[] = {
    kFold,
    Pass{.name = "binary_folding",
         .summary = "Folds constant scales and shifts into weights and biases",
         .run = foldBinary,
         .repeats = "a chain shrinks by one link in each round, because a new weight is folded before it is used again",
         .after = kFoldAfter,
         .rewrites = kBinaryRewrites}};

constexpr Row kLayoutRows[] = {Pass{.name = "convert_conv_weights_to_channels_last",
                                    .summary = "Puts weights of convolutions into channels last where that is faster",
                                    .run = convertWeightsToChannelsLast,
                                    .rewrites = kLayoutRewrites}};

constexpr Row kFreezeRows[] = {Pass{.name = "view_to_reshape",
                                    .summary = "Turns views into reshapes, which copy where strides allow no view",
                                    .run = viewToReshape,
                                    .starts = "aten.view.default"},
                               Pass{.name = "replace_params_with_constants",
                                    .summary = "Makes parameters and buffers constants of the graph",
                                    .run = replaceParametersWithConstants,
                                    .rewrites = kFreezeRewrites},
                               Pass{.name = "fx_graph_cse",
                                    .summary = "Merges calls that compute the same",
                                    .run = mergeEqualCalls,
                                    .rewrites = kEqualCallRewrites},
                               Repeat{4, kRounds},
                               Pass{.name = "restore_precision",
                                    .summary = "Removes dtype casts left over from folding in higher precision",
                                    .run = restorePrecision,
                                    .rewrites = kRestoreRewrites},
                               kFold,
                               Pass{.name = "freezing_pattern_0",
                                    .summary = "Drops conversions that change nothing",
                                    .run = freezingPattern0,
                                    .rules = freezingPattern0Rules},
                               Pass{.name = "pack_convolutions",
                                    .summary = "Packs weights of convolutions for the library that computes them",
                                    .run = packConvolutions,
                                    .when = packsWeights,
                                    .after = kFoldAfter,
                                    .rules = packConvolutionRules},
                               Pass{.name = "dequant_promotion",
                                    .summary = "Dequantizes a tensor once for each of its readers",
                                    .run = promoteDequantize,
                                    .when = joinsQuantized,
                                    .rewrites = kPromoteRewrites},
                               Pass{.name = "concat_products",
                                    .summary = "Computes products of one tensor with several weights in one call",
                                    .run = concatProducts,
                                    .rewrites = kConcatRewrites},
                               Pass{.name = "pack_linears",
                                    .summary = "Packs weights of matrix products for the library that computes them",
                                    .run = packLinears,
                                    .when = packsWeights,
                                    .after = kPackLinearsAfter,
                                    .rules = packLinearRules},
                               Pass{.name = "recover_linear",
                                    .summary = "Makes reshapes and biases part of packed linear layers",
                                    .run = recoverLinears,
                                    .when = packsWeights,
                                    .after = kRecoverAfter,
                                    .rules = recoverLinearRules},
                               Pass{.name = "concat_weight_only_products",
                                    .summary = "Computes products of one tensor with several int8 weights in one call",
                                    .run = concatWeightOnlyProducts,
                                    .when = packsWeights,
                                    .after = kFoldAfter,
                                    .rewrites = kWeightOnlyRewrites},
                               Pass{.name = "quantized_weight_prepack",
                                    .summary = "Replaces products and convolutions of dequantized tensors by int8 ones",
                                    .run = packQuantizedWeights,
                                    .when = joinsQuantized,
                                    .after = kQuantizedPackAfter,
                                    .rewrites = kQuantizedPackRewrites},
                               Pass{.name = "dynamic_weight_prepack",
                                    .summary = "Fuses fp16 rounding of weights, and SmoothQuant scales, into products",
                                    .run = packDynamicWeights,
                                    .when = joinsQuantized,
                                    .after = kFoldAfter,
                                    .rewrites = kDynamicPackRewrites},
                               Pass{.name = "quantized_output_fusion",
                                    .summary = "Fuses quantization of the result into the quantized product",
                                    .run = fuseQuantizedOutput,
                                    .when = joinsQuantized,
                                    .after = kPostOpsAfter,
                                    .rules = quantizedOutputRules},
                               Pass{.name = "quantized_function_fusion",
                                    .summary = "Fuses an activation into the quantized product",
                                    .run = fuseQuantizedFunction,
                                    .when = joinsQuantized,
                                    .after = kFunctionsAfter,
                                    .rules = quantizedFunctionRules},
                               Pass{.name = "quantized_sum_fusion",
                                    .summary = "Fuses an addition into the quantized product",
                                    .run = fuseQuantizedSum,
                                    .when = joinsQuantized,
                                    .after = kSumsAfter,
                                    .rules = quantizedSumRules},
                               Pass{.name = "merge_packed_weights",
                                    .summary = "Deduplicates identical packed weights",
                                    .run = mergePackedWeights,
                                    .when = packsWeights,
                                    .after = kRecoverAfter,
                                    .rewrites = kMergePackedRewrites},
                               Pass{.name = "stable_sort",
                                    .summary = "Sorts nodes so that each stands after its operands",
                                    .run = stableSort,
                                    .rewrites = kSortRewrites},
                               kFold};

constexpr Dependency kLayoutAfter[] = {{"decompose", "layouts are chosen for aten.convolution"}};
constexpr Dependency kFreezeAfter[] = {{"joint", "the rules of the joint stage look for weights among the inputs"}};

}  // namespace

const Stage kLayout{.name = "layout", .rows = kLayoutRows, .after = kLayoutAfter};
const Stage kFreeze{.name = "freeze", .rows = kFreezeRows, .after = kFreezeAfter};

}  // namespace cutaway
