#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Two products in one kernel, off by default (spec: passes 6.2, step 15): A @ f(B @ C) and f(A @ B) @ C on the GPU,
/// where f is pointwise, reads nothing else and is read by nobody else, become higher_order.b2b_gemm(graph, A, B, C);
/// the graph holds both products and f, so that what is fused can be read, and the interpreter runs it. Only where the
/// kernel is expected to load less than the two products: the mean of the three best block shapes decides, as in
/// PyTorch. Leaves alone: symbolic and empty sizes, matrices of several dtypes (PyTorch's kernel gives the dtype of A;
/// `parity`).
Result<bool> mergeProductsBackToBack(Module& module, Rewriter& rewriter);

}  // namespace cutaway
