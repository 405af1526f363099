// Decompositions that follow from eigenvalues and singular values: polar form and square root. Each stays one call, as
// in PyTorch's compiler.
#include "engine/ops/expanded.h"
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// V diag(values) V^H
Value withEigenvalues(const Value& vectors, const Value& values) {
    return matmul(columnsScaled(vectors, values), adjointOf(vectors));
}
/// X with H X + X H = C for a Hermitian H of these eigenvalues and vectors.
Value solveSylvester(const Value& values, const Value& vectors, const Value& c) {
    const Value turned = matmul(matmul(adjointOf(vectors), c), vectors);
    const Value sums = unsqueeze(values, -1) + unsqueeze(values, -2);
    return matmul(matmul(vectors, turned / sums), adjointOf(vectors));
}
std::pair<Value, Value> eigenOf(Decomposition& d, const Value& hermitian) {
    const Value both = d.call("aten._linalg_eigh.default", {hermitian, "L", true});
    return {both[0], both[1]};
}
Value rowMajor(const Value& x) {
    return x.builder().call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
}

// A = U H, the columns of U orthonormal, H positive semidefinite: with A = P S Q^H, U = P Q^H and H = Q S Q^H.
Values polarForm(Decomposition& d) {
    const auto type = read(d, matricesAt(d, "A", false));
    if (!type) return Value(d.builder(), nullptr);
    if (exceeds(type->sizes[type->sizes.size() - 1], type->sizes[type->sizes.size() - 2]))
        return refuse(d, "needs matrices with at least as many rows as columns, not " + type->text());
    const Value svd = d.call("aten._linalg_svd.default", {d.in(size_t{0}), false, true});
    const Value right = svd[2];
    return {rowMajor(matmul(svd[0], right)), rowMajor(withEigenvalues(adjointOf(right), svd[1]))};
}
/// With W = U^H dA, the rotation U^H dU = X solves H X + X H = W - W^H, and dH = W - X H.
void derivePolarForm(Derivation& d) {
    const Value u = d.out(0), h = d.out(1), du = d.dy(0), dh = d.dy(1);
    const auto [values, vectors] = eigenOf(d, h);
    Value turning = du ? matmul(adjointOf(u), du) : Value();
    if (dh) turning = turning ? turning - matmul(dh, h) : -matmul(dh, h);
    const Value solved = solveSylvester(values, vectors, turning);
    Value gradient = matmul(u, plus(solved - adjointOf(solved), dh));
    if (du && u.size(-1) != u.size(-2)) {  // what lies outside of the columns of U
        const Value outside = du - matmul(u, matmul(adjointOf(u), du));
        gradient = gradient + matmul(outside, withEigenvalues(vectors, unary("aten.reciprocal.default", values)));
    }
    d.input(0) = gradient;
}

// X X = A for a Hermitian A, of which the lower triangle is read. Eigenvalues that rounding makes negative count as 0.
Values hermitianRoot(Decomposition& d) {
    if (!read(d, matricesAt(d, "self", true))) return Value(d.builder(), nullptr);
    const auto [values, vectors] = eigenOf(d, d.in(size_t{0}));
    const Value roots = unary("aten.sqrt.default", d.call("aten.clamp_min.default", {values, int64_t{0}}));
    return rowMajor(withEigenvalues(vectors, roots));
}
void deriveHermitianRoot(Derivation& d) {
    const auto [values, vectors] = eigenOf(d, d.out());
    // A moves as a Hermitian matrix does.
    d.input(0) = solveSylvester(values, vectors, (d.dy() + adjointOf(d.dy())) * 0.5);
}

constexpr OpDef kLinalgPolarOps[] = {
    {.schema = "aten.linalg_polar.default(Tensor A) -> (Tensor U, Tensor H)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = polarForm,
     .derive = derivePolarForm,
     .samples = "f64[4, 3]\nf64[2, 3, 3]\nf32[3, 2]\nc64[3, 2]"},
    {.schema = "aten.linalg_matrix_sqrth.default(Tensor self) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = hermitianRoot,
     .derive = deriveHermitianRoot,
     .samples = "f64[1, 1]>0\nf64[2, 1, 1]>0"},
};

}  // namespace

std::span<const OpDef> linalgPolarOps() { return kLinalgPolarOps; }

}  // namespace cutaway
