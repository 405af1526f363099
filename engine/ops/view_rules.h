#pragma once
// Geometry that the view ops share: types and values of tensors seen through other sizes and strides.
#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"

namespace cutaway {

/// `source` through other sizes and strides; dtype, device and grad flag stay. The strides count as known.
TensorType viewType(const TensorType& source, SymDims sizes, SymDims strides, SymInt offset);

/// Kernels of ops whose result (or every item of it) is operand 0 with the inferred geometry.
EvalResult evalView(const EvalContext& c);
EvalResult evalViews(const EvalContext& c);

/// The operand between start and start + size along one dim.
TensorType partOf(const TensorType& self, int64_t dim, const SymInt& start, const SymInt& size);
/// A slice with Python's rules: negative bounds count from the end, and both are clamped.
struct SliceBounds {
    SymInt start, length;
    int64_t step = 1;
};
Result<SliceBounds> sliceBounds(const InferContext& c, const SymInt& size);
/// An index into a dim, wrapped; an error if it is known to lie outside.
Result<SymInt> wrapIndex(const InferContext& c, const SymInt& index, const SymInt& size);

/// Type of operand 0 through the diagonal of two dims, which goes last.
Result<TensorType> diagonalType(const InferContext& c, const TensorType& source);
/// Type of an as_strided view of `source`; an absent offset is the source's own.
Result<TensorType> stridedType(const InferContext& c, const TensorType& source);
/// Number of elements from the first to the last that a geometry reaches; 0 if it is empty.
SymInt extentOf(const TensorType& type);
/// Whether two indices may reach the same element, by PyTorch's sufficient test: strides that nest cannot. Symbols of
/// which the order is not known may.
bool mayOverlap(const TensorType& type);
/// ErrorCode::Limit for more than 8192 pieces: each is a value of its own, with a type and a place in memory.
Result<void> checkPieces(const InferContext& c, int64_t count);

}  // namespace cutaway
