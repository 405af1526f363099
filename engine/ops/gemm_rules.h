#pragma once
// What the files of the matrix product family share.
#include "engine/ops/counts.h"

namespace cutaway {

/// Row-major type of the product of two matrices (rank 2) or batches of them (rank 3) of one dtype.
Result<TensorType> productType(const InferContext& c, const TensorType& a, const TensorType& b, int64_t rank);
/// The type of beta * self + alpha * product: self, parameter 0, broadcasts to the product, and the factors are numbers
/// of its dtype.
Result<ValueType> addendFits(const InferContext& c, TensorType product);
/// x, or x times a factor that is there and not 1.
Value scaled(const Value& x, const std::optional<Scalar>& factor);

}  // namespace cutaway
