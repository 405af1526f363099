// Cholesky factors, and systems with triangular matrices.
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Result<ValueType> inferCholesky(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", true));
    const TensorType factor = batchType(a, {a.sizes.back(), a.sizes.back()}, a.dtype, true);
    if (c.op().schema()->returns.size() == 1) return ValueType(factor);
    return ValueType(TupleType{factor, batchType(a, {}, DType::I32)});
}
EvalResult evalCholesky(const EvalContext& c) {
    Tensor out = c.result(0);
    const bool both = c.op().schema()->returns.size() > 1;
    std::vector<int64_t> info;
    withMatrix(out.dtype(), [&](auto tag) {
        auto matrices = matricesOf<decltype(tag)>(c.in(size_t{0}));
        for (auto& one : matrices) {
            if (c.flag("upper")) one = adjoint(one);
            info.push_back(factorCholesky(one));
            for (int64_t i = 0; i < one.rows; ++i)
                for (int64_t k = i + 1; k < one.rows; ++k) one(i, k) = 0;
            if (c.flag("upper")) one = adjoint(one);
        }
        storeMatrices(matrices, out);
    });
    for (const int64_t order : info)
        if (order != 0 && (!both || c.flag("check_errors")))
            return c.fail("a matrix is not positive definite: its leading minor of order " + std::to_string(order));
    if (!both) return out;
    return TensorList{out, storeIntegers(c, 1, info)};
}
/// L^-H Phi(L^H gL) L^-1 with Phi(A) = (tril(A) + tril(A, -1)^H) / 2.
void deriveCholesky(Derivation& d) {
    if (!d.dy(0)) return;
    const bool upper = d.flag("upper");
    const Value l = upper ? adjointOf(d.out(0)) : d.out(0), gl = upper ? adjointOf(d.dy(0)) : d.dy(0);
    const Value lh = adjointOf(l), phi = triangle(matmul(lh, gl), false);
    Value g = (phi + adjointOf(triangle(phi, false, -1))) * 0.5;
    g = d.call("aten.linalg_solve_triangular.default", {lh, g}, {{"upper", true}, {"left", true}});
    d.input(0) = d.call("aten.linalg_solve_triangular.default", {l, g}, {{"upper", false}, {"left", false}});
}
Result<ValueType> inferCholeskyInverse(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", true));
    return ValueType(batchType(a, {a.sizes.back(), a.sizes.back()}, a.dtype, true));
}
EvalResult evalCholeskyInverse(const EvalContext& c) {
    Tensor out = c.result();
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        auto matrices = matricesOf<T>(c.in(size_t{0}));
        for (auto& one : matrices) {
            Dense<T> inverse = Dense<T>::identity(one.rows);
            solveCholesky(one, c.flag("upper"), inverse);
            one = inverse;
        }
        storeMatrices(matrices, out);
    });
    return out;
}
/// Type of the solution: the right side's last two sizes behind the broadcast batch. Errors: dtypes that differ, and a
/// right side b with b.size(-dim) other than the matrix's size.
Result<ValueType> inferSolved(const InferContext& c, const TensorType& a, const TensorType& b, size_t dim) {
    if (a.dtype != b.dtype) return c.fail("matrix and right side of different dtypes");
    const SymInt &n = a.sizes.back(), &have = b.sizes[b.sizes.size() - dim];
    if (differ(n, have)) return c.fail("the matrices of " + a.text() + " do not fit " + b.text());
    const SymDims shapes[] = {SymDims(a.sizes.begin(), a.sizes.end() - 2), SymDims(b.sizes.begin(), b.sizes.end() - 2)};
    auto batch = broadcastSizes(shapes);
    if (!batch) return c.fail(batch.error().message);
    TensorType like = b;
    like.sizes = *batch;
    like.sizes.insert(like.sizes.end(), b.sizes.end() - 2, b.sizes.end());
    return ValueType(batchType(like, SymDims(b.sizes.end() - 2, b.sizes.end()), b.dtype, true));
}
Result<ValueType> inferCholeskySolve(const InferContext& c) {
    CT_TRY(const TensorType b, matricesAt(c, "self", false));
    CT_TRY(const TensorType a, matricesAt(c, "input2", true));
    return inferSolved(c, a, b, 2);
}
EvalResult evalCholeskySolve(const EvalContext& c) {
    Tensor out = c.result();
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto factors = matricesOf<T>(spreadBatch(c.in("input2"), out.sizes(), 2));
        auto sides = matricesOf<T>(spreadBatch(c.in("self"), out.sizes(), 2));
        for (size_t k = 0; k < sides.size(); ++k) solveCholesky(factors[k], c.flag("upper"), sides[k]);
        storeMatrices(sides, out);
    });
    return out;
}
void deriveCholeskySolve(Derivation& d) {
    const Value g = d.call("aten.cholesky_solve.default", {d.dy(), d.in(1), d.arg("upper")});
    if (d.needs(1)) {
        const Value outer = matmul(g, adjointOf(d.out())), both = outer + adjointOf(outer);
        d.input(1) = d.flag("upper") ? -matmul(d.in(1), both) : -matmul(both, d.in(1));
    }
    if (d.needs(0)) d.input(0) = g;
}

// -- triangles

Result<ValueType> inferTriangular(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", true));
    CT_TRY(const TensorType b, matricesAt(c, "B", false));
    const bool left = c.flag("left", true);
    return inferSolved(c, a, b, left ? 2 : 1);
}
EvalResult evalTriangular(const EvalContext& c) {
    Tensor out = c.result();
    const bool left = c.flag("left", true), upper = c.flag("upper"), unit = c.flag("unitriangular");
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto triangles = matricesOf<T>(spreadBatch(c.in("self"), out.sizes(), 2));
        auto sides = matricesOf<T>(spreadBatch(c.in("B"), out.sizes(), 2));
        for (size_t k = 0; k < sides.size(); ++k) {
            Dense<T> side = left ? sides[k] : adjoint(sides[k]);
            solveTriangle(triangles[k], side, upper, unit, !left);
            sides[k] = left ? side : adjoint(side);
        }
        storeMatrices(sides, out);
    });
    return out;
}
void deriveTriangular(Derivation& d) {
    const bool upper = d.flag("upper"), left = d.flag("left", true), unit = d.flag("unitriangular");
    const Value g = d.call("aten.linalg_solve_triangular.default", {adjointOf(d.in(0)), d.dy()},
                           {{"upper", !upper}, {"left", left}, {"unitriangular", unit}});
    if (d.needs(1)) d.input(1) = g;
    if (!d.needs(0)) return;
    const Value xh = adjointOf(d.out()), whole = -(left ? matmul(g, xh) : matmul(xh, g));
    d.input(0) = triangle(whole, upper, !unit ? 0 : upper ? 1 : -1);
}

constexpr OpDef kLinalgCholeskyOps[] = {
    {.schema =
         "aten.linalg_cholesky_ex.default(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
     .tags = Tag::Heavy,
     .infer = inferCholesky,
     .eval = evalCholesky,
     .derive = deriveCholesky,
     .samples = "f64[1, 1]>0\nf32[2, 1, 1]>0, upper = True\nf32[0, 0]"},
    {.schema = "aten.cholesky.default(Tensor self, bool upper=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferCholesky,
     .eval = evalCholesky,
     .derive = deriveCholesky,
     .samples = "f64[1, 1]>0\nf32[2, 1, 1]>0, True"},
    {.schema = "aten.cholesky_inverse.default(Tensor self, bool upper=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferCholeskyInverse,
     .eval = evalCholeskyInverse,
     .derive =
         [](Derivation& d) {
             const Value y = d.out(), both = matmul(y, matmul(d.dy() + adjointOf(d.dy()), y));
             d.input(0) = d.flag("upper") ? -matmul(d.in(0), both) : -matmul(both, d.in(0));
         },
     .samples = "f64[3, 3]>0\nf64[2, 3, 3]>0, True\nf32[2, 2]>0"},
    {.schema = "aten.cholesky_solve.default(Tensor self, Tensor input2, bool upper=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferCholeskySolve,
     .eval = evalCholeskySolve,
     .derive = deriveCholeskySolve,
     .samples = "f64[3, 2], f64[3, 3]>0\nf64[2, 3, 2], f64[3, 3]>0, True\nf32[2, 1], f32[2, 2]>0"},
    {.schema =
         "aten.linalg_solve_triangular.default(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferTriangular,
     .eval = evalTriangular,
     .derive = deriveTriangular,
     .samples =
         "f64[3, 3]>0, f64[3, 2], upper = True\nf64[2, 3, 3]>0, f64[3, 2], upper = False\nf64[3, 3]>0, f64[2, 3], upper = True, left = False\n"
         "f64[3, 3], f64[3, 2], upper = False, unitriangular = True\nf32[2, 2]>0, f32[2, 2], upper = False, left = False\nc64[2, 2], c64[2, 2], upper = True"},
};

}  // namespace

std::span<const OpDef> linalgCholeskyOps() { return kLinalgCholeskyOps; }

}  // namespace cutaway
