#pragma once
// What the rows of linalg.* share: shapes of batches of matrices, and the arithmetic of their derivatives.
#include "engine/ops/build.h"
#include "engine/ops/eval.h"
#include "engine/ops/opmath.h"
#include "engine/support/dense_matrix.h"

namespace cutaway {

/// The matrices that a tensor's last two dims hold, in row-major order of the others.
template <class T>
std::vector<Dense<T>> matricesOf(const Tensor& tensor);
/// The reverse: writes the matrices into a tensor of any strides and dtype.
template <class T>
void storeMatrices(const std::vector<Dense<T>>& matrices, Tensor& tensor);

/// Calls body(T{}) with the type that matrices of `dtype` are computed in: its own, as PyTorch does.
template <class Body>
void withMatrix(DType dtype, Body&& body) {
    if (dtype == DType::C64) body(std::complex<float>{});
    else if (isComplex(dtype)) body(std::complex<double>{});
    else if (dtype == DType::F64) body(double{});
    else body(float{});
}

/// The tensor at a parameter, refused unless it is a batch of matrices (of square ones, if asked) of a dtype that has
/// linear algebra: f32, f64 or complex.
Result<TensorType> matricesAt(const InferContext& c, std::string_view param, bool square);
/// A contiguous type of the batch's leading dims and these last ones; matrices column by column, as LAPACK leaves them,
/// where `byColumns`.
TensorType batchType(const TensorType& like, SymDims last, DType dtype, bool byColumns = false);
/// f32 of c64, f64 of c128, a real dtype as it is.
DType realTypeOf(DType dtype);
/// x with its batch spread to that of a tensor of these sizes; its `last` dims stay.
Tensor spreadBatch(const Tensor& x, const Dims& like, int64_t last);
Tensor storeIntegers(const EvalContext& c, size_t result, const std::vector<int64_t>& values);

// Derivatives, over the last two dims.
Value matmul(const Value& a, const Value& b);
/// The conjugate transpose, as a view of real matrices.
Value adjointOf(const Value& x);
/// Each column times its number.
Value columnsScaled(const Value& x, const Value& by);
Value triangle(const Value& x, bool upper, int64_t diagonal = 0);
Value diagonalOf(const Value& x);
/// A diagonal matrix per row of x.
Value diagonalMatrix(const Value& x);
/// The sum; either or both may be missing.
Value plus(const Value& a, const Value& b);

/// The gradient of A = P L U from those of L and U, either of which may be null:
/// P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H. Of matrices that are not square this is the square part, whose
/// factors the rest is divided by, too: A2 = P L U2 of the columns behind it, A2 = P L2 U of the rows below it.
Value throughFactors(Derivation& d, const Value& p, const Value& l, const Value& u, const Value& gl, const Value& gu);
/// The gradients of L and U as one of the matrix that holds both.
Value packedFactors(Derivation& d, const Value& lower, const Value& upper);
/// Of linalg_lu_solve, in both factors, which are one matrix, and in B. Y solves the adjoint system for the gradient
/// that arrives; what is due to A is a product of X and Y, and reaches the factors through P^T A = L U.
void deriveLuSolve(Derivation& d);

}  // namespace cutaway
