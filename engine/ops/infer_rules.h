#pragma once
// Shape rules that many ops share. Strides follow PyTorch: elementwise results keep the layout of their operands
// (TensorIterator's permutation), reductions and matrix products are row-major, views are computed exactly.
#include "engine/ir/infer.h"

namespace cutaway {

/// Elementwise over operands 0..n-1 (every Tensor parameter): broadcast sizes, promoted dtype.
Result<ValueType> inferBroadcast(const InferContext& c);
/// The same, but integers become the default float dtype (div, exp, sqrt).
Result<ValueType> inferBroadcastFloat(const InferContext& c);
/// The same with a bool result (eq, lt, isnan).
Result<ValueType> inferPredicate(const InferContext& c);
// The same three for ops without complex kernels; they refuse complex operands.
Result<ValueType> inferRealBroadcast(const InferContext& c);
Result<ValueType> inferRealFloat(const InferContext& c);
Result<ValueType> inferRealPredicate(const InferContext& c);
/// inferLikeFirst for floats only; other dtypes are refused as PyTorch refuses them.
Result<ValueType> inferFloatLikeFirst(const InferContext& c);
/// The same for ops that complex numbers have, too.
Result<ValueType> inferFloatOrComplexLikeFirst(const InferContext& c);
/// Same type as operand 0, layout of an elementwise result.
Result<ValueType> inferLikeFirst(const InferContext& c);

/// The *_like factories: sizes of operand 0, and its dtype, device and strides where the call does not give others.
Result<ValueType> inferLikeFactory(const InferContext& c);

/// Result type of an elementwise op over these operands with this dtype.
Result<TensorType> elementwiseType(const InferContext& c, std::span<const Operand> operands, DType dtype);
/// Strides TensorIterator would give: operands' common dim order, row-major when they disagree or are contiguous.
SymDims elementwiseStrides(const SymDims& sizes, std::span<const Operand> operands);

/// Sizes of a reduction over wrapped dims.
SymDims reducedSizes(const SymDims& sizes, std::span<const int64_t> dims, bool keepDim);
/// Strides of `view(sizes)` of a tensor without copying, or nullopt where a copy would be needed.
std::optional<SymDims> viewStrides(const SymDims& sizes, const SymDims& strides, const SymDims& newSizes);
/// Resolves the one -1 of a view size. Error naming sizes that do not match.
Result<SymDims> resolveViewSizes(const InferContext& c, const SymDims& given, const SymInt& numel);
/// Strides of a dense tensor of these sizes whose dims are ordered like `like` (preserve_format).
SymDims preservedStrides(const TensorType& like);
/// True if a 4- or 5-d tensor's strides say channels-last (row-major wins where both fit), as kernels with such forms
/// ask.
bool isChannelsLast(const TensorType& type);
/// Strides for an explicit memory format; nullopt if the rank does not allow it.
std::optional<SymDims> formatStrides(MemoryFormat format, const SymDims& sizes);

}  // namespace cutaway
