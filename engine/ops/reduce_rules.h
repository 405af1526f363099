#pragma once
// What reductions share: which dims they reduce, the type that leaves, and how a gradient gets its dims back. The op's
// parameters are called `dim` (absent or None or [] = all) and `keepdim`, as in every aten reduction.
#include "engine/ops/build.h"

namespace cutaway {

/// The dims reduced, wrapped. Errors name a dim that is out of range or repeated.
Result<std::vector<int64_t>> reductionDims(const InferContext& c, int64_t rank);
/// The same once the shape rule has accepted them.
std::vector<int64_t> reducedDims(const InferContext& c, int64_t rank);
bool keepsDims(const InferContext& c);
/// Row-major type of the result with this dtype.
Result<TensorType> reducedType(const InferContext& c, DType dtype);
/// A value of the result's shape with the reduced dims as 1, unless keepdim left them or none remains.
Value withReducedDims(Derivation& d, Value gradient);

/// How many elements make one of the result.
SymInt reducedCount(const InferContext& c, const TensorType& self);

// Derivatives that several reductions share.
/// g * 2/(N - correction) * (x - mean(x)), `gradient` being that of the variance.
Value varianceGradient(Derivation& d, Value gradient);
/// expand(g) / N, `gradient` being that of the mean.
Value meanGradient(Derivation& d, const Value& gradient);
/// Of (values, positions) chosen along `dim`: the gradient scattered to the positions.
void deriveSelected(Derivation& d, bool keepDim);
/// Of one element chosen from all: the gradient in equal shares to those that equal it; NaN equals NaN here.
void deriveShared(Derivation& d);
/// Type of a variance: floats only, row-major.
Result<ValueType> inferVariance(const InferContext& c);
Result<ValueType> inferVarMean(const InferContext& c);

}  // namespace cutaway
