#pragma once
// Advanced indexing, x[i, :, j] with tensors as indices: which dims are indexed, the shape of the result, and the walk
// over concrete tensors. Shared by index, index_put and their variants.
#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"

namespace cutaway {

/// The plan of one indexing. The indices broadcast to `indexSizes`. Where the indexed dims stand side by side, the
/// index dims take their place; otherwise they come first.
struct IndexPlan {
    std::vector<size_t> indexed;        // dims of the tensor that an index replaces, ascending
    std::vector<size_t> before, after;  // the other dims, before and after the index dims of the result
    SymDims indexSizes;
    SymDims sizes;  // of the result
};
/// `shapes[d]` is the shape of the index for dim d, or nothing where the dim is kept; shorter lists keep the rest.
Result<IndexPlan> planIndex(const InferContext& c, const SymDims& self,
                            const std::vector<std::optional<SymDims>>& shapes);

/// The index tensors of a Tensor?[] parameter as types, None as nullopt. Masks (bool, uint8) stay what they are.
Result<std::vector<std::optional<TensorType>>> indexTypes(const InferContext& c, std::string_view param);
/// The plan for a call whose indices are all integers. Masks are refused: the shape would depend on their values.
Result<IndexPlan> planCall(const InferContext& c, const TensorType& self, std::string_view param);
/// Type of indexing `self` by the plan: the layout of the kept dims survives, as TensorIterator has it.
TensorType indexedType(const TensorType& self, const IndexPlan& plan);

/// The index into `self` of the element at `position` of the plan's result. `operand` is where the indices stand in the
/// call. Those that lie outside fail the run, or are clamped to the nearest end.
enum class Outside : uint8_t { Fails, Clamped };
std::vector<Expr> indexedElement(LowerContext& c, const TensorType& self, size_t operand, const IndexPlan& plan,
                                 const std::vector<Expr>& position, Outside outside);

/// Concrete indices: masks turned into the positions where they hold, integers checked (negative ones wrapped).
struct IndexTables {
    IndexPlan plan;
    std::vector<int64_t> before, index, after;  // offsets into the indexed tensor, row-major over each group of dims
};
/// Offsets for a tensor of these sizes and strides. Errors name an index that lies outside.
Result<IndexTables> indexTables(const InferContext& c, const Dims& sizes, const Dims& strides,
                                const TensorList& indices);
/// The forms that index one dim take no index that counts from the end.
std::optional<Error> negativeIndex(const InferContext& c, const Tensor& index);
/// Offsets of the elements of a box, row-major.
std::vector<int64_t> boxOffsets(const Dims& sizes, const Dims& strides);

}  // namespace cutaway
