#include "engine/support/release_changes.h"

#include <iterator>

#include "engine/support/check.h"

namespace cutaway {
namespace {

using enum Release;

constexpr ChangeRow kChanges[] = {
    {ReleaseChange::ProductsOfOneTerm, V2_12, "capture", "aten.bmm.default",
     "a batch of columns times rows is a product of elements; a matrix product of one element or line is none"},
    {ReleaseChange::LerpOfSums, V2_12, "capture", "aten.lerp.*",
     "lerp by a number is a difference and one add with alpha; by a tensor it ends in addcmul"},
    {ReleaseChange::SavedLogSigmoid, V2_12, "capture", "aten.log_sigmoid_backward.default",
     "the CPU reads the exponential that the forward has saved, not the input again"},
    {ReleaseChange::TangentsAsOutputs, V2_12, "capture", "tangents",
     "the gradient of an output comes in with the output's strides, where these are dense; before, row-major"},
    {ReleaseChange::DrawsInOrder, V2_12, "post_grad", "reorder_for_locality",
     "draws of random numbers are not moved, so that they keep their order"},
    {ReleaseChange::TruncatedFraction, V2_13, "capture", "aten.frac.default",
     "x - trunc(x) in place of x - floor(|x|) * sign(x)"},
    {ReleaseChange::GradientOfSilu, V2_13, "capture", "aten.silu_backward.default",
     "the gradient has one sigmoid in place of neg, exp, add, reciprocal and mul"},
    {ReleaseChange::MaskedEmbedding, V2_13, "capture", "aten.embedding_dense_backward.default",
     "indices outside of the table are masked, as the padding index is, and add nothing"},
    {ReleaseChange::WholeSoftmax, V2_13, "joint", "mul_softmax_rescale",
     "rows that are not finite once they are scaled keep the difference as written, and so their NaN"},
    {ReleaseChange::WiderFirst, V2_13, "joint", "pointless_convert",
     "a conversion whose dtype is smaller than the next one's stays"},
    {ReleaseChange::SelectedDtype, V2_13, "joint", "scatter_upon_const_tensor",
     "what is selected is converted to the dtype of the constant"},
    {ReleaseChange::MaximumOfAll, V2_13, "capture", "aten.adaptive_max_pool*",
     "pooling to one element is amax and argmax, not a window of the whole plane"},
    {ReleaseChange::BoundsInOpmath, V2_13, "capture", "aten.hardtanh_backward.default",
     "half precision is compared with the bounds in f32, as the kernel does"},
    {ReleaseChange::StridesOfBorders, V2_13, "capture", "aten.reflection_pad*, aten.replication_pad*",
     "a padded tensor that was channels last is so again; before, where the last index had left it so"},
    {ReleaseChange::ReciprocalRoot, V2_14, "capture", "aten._native_batch_norm_legit_no_training.default",
     "a batch norm in evaluation has one rsqrt in place of sqrt, reciprocal and mul"},
    {ReleaseChange::PlainDropout, V2_14, "capture", "aten.dropout.default",
     "dropout in evaluation is its input, not a copy"},
    {ReleaseChange::GroupNormTerms, V2_14, "capture", "aten.native_group_norm_backward.default",
     "the gradient through the statistics is one addcmul"},
    {ReleaseChange::GradientAtBounds, V2_14, "capture", "aten.clamp*",
     "an element on a number's bound gets the gradient 0, not 1; on a tensor's it and the bound get one half each"},
    {ReleaseChange::NumbersThatChangeNothing, V2_14, "joint", "neutral_operand",
     "+ 0, - 0, * 1 and / 1 go where the operand is a number, too, not only a tensor"},
    {ReleaseChange::ProductsWithZero, V2_14, "joint", "zero_product",
     "x * 0 is 0 of integers and bools alone, not of floats"},
    {ReleaseChange::PermutationRows, V2_14, "joint", "randperm_index_slice",
     "the beginning of a permutation is found: before, the pattern had lost its slice"},
    {ReleaseChange::QuantizationElsewhere, V2_14, "freeze", "quantized_weight_prepack",
     "joining quantized layers moved to TorchAO: without it they stay as they are (--enable torchao)"},
    {ReleaseChange::RoundedLambda, V2_14, "capture", "aten.softshrink.default",
     "lambda is rounded to the dtype of half-precision operands, as the kernel does"},
    {ReleaseChange::WeightsOfRows, V2_14, "capture", "aten.multi_margin_loss.default",
     "the weights are indexed by the targets in one dim"},
    {ReleaseChange::AttentionOfThreeDims, V2_14, "capture", "aten.scaled_dot_product_attention.default",
     "on the CPU operands of three dims, and one head of keys and values for all heads, use the fused kernel, too"},
    {ReleaseChange::UniformOfRand, V2_14, "capture", "aten.uniform.default",
     "is made of rand, and so compiled; before, one call of a kernel"},
    {ReleaseChange::BiasesAlone, V2_14, "post_grad", "unfuse_bias_add_to_pointwise",
     "only what is read again for rows or columns leaves a product; an addend of its size stays"},
    {ReleaseChange::SidesMergedApart, V2_14, "partition", "fx_graph_cse",
     "a call that no gradient depends on is not merged with an equal one that a gradient depends on"},
    {ReleaseChange::CountsInF64, V2_14, "post_grad", "pointless_cumsum_replacement",
     "the sum counts in i64 or f64 and is converted at the end; before, in the dtype of the constant"},
    {ReleaseChange::AddendOfAddmv, V2_15, "capture", "aten.addmv.default",
     "the addend is expanded to the result's sizes"},
    {ReleaseChange::StridesOfMaxima, V2_15, "capture", "aten.adaptive_max_pool3d.default",
     "the maxima and their positions are forced to be row-major"},
    {ReleaseChange::SignOfLogNormal, V2_15, "capture", "aten.special_log_ndtr.default",
     "the result gets a negative sign by copysign, so that its zeros are -0"},
};

}  // namespace

std::span<const ChangeRow> releaseChanges() { return kChanges; }

bool has(Release release, ReleaseChange change) {
    for (const ChangeRow& row : kChanges)
        if (row.change == change) return release >= row.since;
    CT_CHECK(false, "each change has a row");
    return false;
}

}  // namespace cutaway
