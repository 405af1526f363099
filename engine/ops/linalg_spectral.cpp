// Orthogonal factors, eigenvalues, singular values and the matrix exponential. Directions of eigenvectors and singular
// vectors are not unique; ours are LAPACK's, from the drivers that PyTorch calls.
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

void refuseDerivative(Derivation& d, const std::string& of) {
    d.builder().fail(unsupported(d.op().name() + " of " + of + " has no derivative here"));
}
/// The matrix of differences l_k - l_i; 1 on the diagonal, where quotients are made but not used.
Value eigenDifferences(const Value& l) {
    return unsqueeze(l, -2) - unsqueeze(l, -1) + diagonalMatrix(unary("aten.ones_like.default", l));
}
Value rowsScaled(const Value& x, const Value& by) { return unsqueeze(by, -1) * x; }
Value withDiagonal(const Value& x, const Value& diagonal) {
    return x - diagonalMatrix(diagonalOf(x)) + diagonalMatrix(diagonal);
}

// -- QR

Result<ValueType> inferQr(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", false));
    const std::string mode = c.text("mode");
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back();
    if (mode != "reduced" && mode != "complete" && mode != "r")
        return c.fail("mode is 'reduced', 'complete' or 'r', not '" + mode + "'");
    const SymInt k = mode == "complete" ? rows : min(rows, columns);
    const TensorType q =
        mode == "r" ? TensorType::contiguous(a.dtype, {SymInt(0)}, a.device) : batchType(a, {rows, k}, a.dtype, true);
    return ValueType(TupleType{q, batchType(a, {k, columns}, a.dtype, true)});
}
EvalResult evalQr(const EvalContext& c) {
    TensorList out = {c.result(0), c.result(1)};
    const std::string mode = c.text("mode");
    withMatrix(out[1].dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<Dense<T>> q, r;
        for (auto& one : matricesOf<T>(c.in("A"))) {
            Dense<T> factors = one;
            std::vector<T> tau;
            factorQr(factors, tau);
            const int64_t k = out[1].size(-2);
            Dense<T>& upper = r.emplace_back(k, factors.columns);
            for (int64_t i = 0; i < std::min(k, factors.rows); ++i)
                for (int64_t j = i; j < factors.columns; ++j) upper(i, j) = factors(i, j);
            if (mode != "r") q.push_back(multiplyReflections(factors, tau, k));
        }
        if (mode != "r") storeMatrices(q, out[0]);
        storeMatrices(r, out[1]);
    });
    return out;
}
void deriveQr(Derivation& d) {
    const Value a = d.in(0), gq = d.dy(0), gr = d.dy(1);
    const SymInt rows = a.size(-2), columns = a.size(-1);
    if (!gq && !gr) return;
    if (d.text("mode") == "r") return refuseDerivative(d, "mode 'r', which does not keep Q,");
    if (!rows.isInt() || !columns.isInt() || rows.value() < columns.value())
        return refuseDerivative(d, "matrices with more columns than rows");
    if (d.text("mode") == "complete" && rows.value() > columns.value())
        return refuseDerivative(d, "mode 'complete' and matrices with more rows than columns");
    const Value q = d.out(0), r = d.out(1);
    Value inner;
    if (gr) inner = matmul(gr, adjointOf(r));
    if (gq) inner = inner ? inner - matmul(adjointOf(q), gq) : -matmul(adjointOf(q), gq);
    inner = triangle(inner, true);
    inner = inner + adjointOf(inner);
    inner = inner - diagonalMatrix(diagonalOf(inner)) * 0.5;
    d.input(0) = d.call("aten.linalg_solve_triangular.default", {adjointOf(r), plus(gq, matmul(q, inner))},
                        {{"upper", false}, {"left", false}});
}
Result<ValueType> inferReflections(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "input", false));
    CT_TRY(const TensorType tau, c.tensor("tau"));
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back();
    if (exceeds(columns, rows)) return c.fail("needs at least as many rows as columns, not " + a.text());
    if (tau.dtype != a.dtype || tau.rank() != a.rank() - 1 || exceeds(tau.sizes.back(), columns))
        return c.fail("the factors " + tau.text() + " do not fit " + a.text());
    for (size_t i = 0; i + 2 < a.sizes.size(); ++i)
        if (differ(a.sizes[i], tau.sizes[i])) return c.fail("the factors " + tau.text() + " do not fit " + a.text());
    return ValueType(batchType(a, {rows, columns}, a.dtype, true));
}
EvalResult evalReflections(const EvalContext& c) {
    Tensor out = c.result();
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        auto matrices = matricesOf<T>(c.in("input"));
        const Tensor tau = c.in("tau");
        Dims sizes = tau.sizes(), strides = tau.strides();
        sizes.push_back(1);
        strides.push_back(1);
        const auto factors = matricesOf<T>(tau.view(sizes, strides, tau.offset()));
        for (size_t k = 0; k < matrices.size(); ++k)
            matrices[k] = multiplyReflections(matrices[k], factors[k].elements, matrices[k].columns);
        storeMatrices(matrices, out);
    });
    return out;
}

// -- eigenvalues

Result<ValueType> inferEigenHermitian(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", true));
    const std::string triangle = c.text("UPLO");
    if (triangle != "L" && triangle != "U" && triangle != "l" && triangle != "u")
        return c.fail("UPLO is 'L' or 'U', not '" + triangle + "'");
    const SymInt n = a.sizes.back();
    const TensorType vectors = c.flag("compute_v", true) ? batchType(a, {n, n}, a.dtype, true)
                                                         : TensorType::contiguous(a.dtype, {SymInt(0)}, a.device);
    return ValueType(TupleType{batchType(a, {n}, realTypeOf(a.dtype)), vectors});
}
EvalResult evalEigenHermitian(const EvalContext& c) {
    TensorList out = {c.result(0), c.result(1)};
    const bool upper = c.text("UPLO") == "U" || c.text("UPLO") == "u";
    const bool vectors = c.flag("compute_v", true);
    const char* why = nullptr;
    withMatrix(out[1].dtype(), [&](auto tag) {
        std::vector<double> values, own;
        auto matrices = matricesOf<decltype(tag)>(c.in("A"));
        for (auto& one : matrices) {
            if (const char* const problem = eigenHermitian(one, upper, vectors, own)) why = problem;
            values.insert(values.end(), own.begin(), own.end());
        }
        unpackElements(values, out[0]);
        if (vectors) storeMatrices(matrices, out[1]);
    });
    if (why) return c.fail(why);
    return out;
}
void deriveEigenHermitian(Derivation& d) {
    if (!d.flag("compute_v", true)) return refuseDerivative(d, "compute_v=False");
    const Value values = d.out(0), v = d.out(1), vh = adjointOf(v);
    if (!d.dy(1)) {
        if (d.dy(0)) d.input(0) = matmul(v, rowsScaled(vh, d.dy(0)));
        return;
    }
    Value inner = matmul(vh, d.dy(1)) / eigenDifferences(values);
    if (d.dy(0)) inner = withDiagonal(inner, d.dy(0));
    d.input(0) = matmul(v, matmul(inner, vh));
}
Result<ValueType> inferEigen(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", true));
    const DType dtype = a.dtype == DType::F32 || a.dtype == DType::C64 ? DType::C64 : DType::C128;
    const SymInt n = a.sizes.back();
    return ValueType(TupleType{batchType(a, {n}, dtype), batchType(a, {n, n}, dtype, true)});
}
EvalResult evalEigen(const EvalContext& c) {
    TensorList out = {c.result(0), c.result(1)};
    const char* why = nullptr;
    withMatrix(c.in(size_t{0}).dtype(), [&](auto tag) {
        using Complex = ComplexOf<decltype(tag)>;
        std::vector<Complex> values, own;
        std::vector<Dense<Complex>> vectors;
        for (auto& one : matricesOf<decltype(tag)>(c.in(size_t{0}))) {
            if (const char* const problem = eigenGeneral(one, own, vectors.emplace_back())) why = problem;
            values.insert(values.end(), own.begin(), own.end());
        }
        unpackElements(values, out[0]);
        storeMatrices(vectors, out[1]);
    });
    if (why) return c.fail(why);
    return out;
}
void deriveEigen(Derivation& d) {
    const Value v = d.out(1), vh = adjointOf(v);
    Value inner;
    if (d.dy(1)) {
        const Value along = matmul(vh, d.dy(1)), lengths = unary("aten.real.default", diagonalOf(along));
        inner = (along - columnsScaled(matmul(vh, v), lengths)) / conjugated(eigenDifferences(d.out(0)));
        if (d.dy(0)) inner = withDiagonal(inner, d.dy(0));
        inner = matmul(inner, vh);
    } else if (d.dy(0)) {
        inner = rowsScaled(vh, d.dy(0));
    }
    if (inner) d.input(0) = d.call("aten.linalg_solve.default", {vh, inner});
}

// -- singular values

Result<ValueType> inferSvd(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", false));
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back(), least = min(rows, columns);
    const bool all = c.flag("full_matrices");
    const TensorType none = TensorType::contiguous(a.dtype, {SymInt(0)}, a.device);
    const bool vectors = c.flag("compute_uv", true);
    return ValueType(TupleType{vectors ? batchType(a, {rows, all ? rows : least}, a.dtype, true) : none,
                               batchType(a, {least}, realTypeOf(a.dtype)),
                               vectors ? batchType(a, {all ? columns : least, columns}, a.dtype, true) : none});
}
EvalResult evalSvd(const EvalContext& c) {
    TensorList out = {c.result(0), c.result(1), c.result(2)};
    const SingularVectors wanted = !c.flag("compute_uv", true) ? SingularVectors::None
                                   : c.flag("full_matrices")   ? SingularVectors::Full
                                                               : SingularVectors::Thin;
    const char* why = nullptr;
    withMatrix(out[0].dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<double> values, own;
        std::vector<Dense<T>> left, right;
        for (const auto& one : matricesOf<T>(c.in("A"))) {
            if (const char* const problem = singularValues(one, wanted, own, left.emplace_back(), right.emplace_back()))
                why = problem;
            values.insert(values.end(), own.begin(), own.end());
        }
        unpackElements(values, out[1]);
        if (wanted == SingularVectors::None) return;
        storeMatrices(left, out[0]);
        storeMatrices(right, out[2]);
    });
    if (why) return c.fail(why);
    return out;
}
Value firstAlong(Derivation& d, const Value& x, int64_t dim, const SymInt& count) {
    return !x || x.size(dim) == count ? x : d.call("aten.slice.Tensor", {x, dim, 0, Argument(count)});
}
void deriveSvd(Derivation& d) {
    if (!d.dy(0) && !d.dy(1) && !d.dy(2)) return;
    if (!d.flag("compute_uv", true)) return refuseDerivative(d, "compute_uv=False");
    const Value a = d.in(0), s = d.out(1);
    const SymInt m = a.size(-2), n = a.size(-1), k = s.size(-1);
    const Value u = firstAlong(d, d.out(0), -1, k), vh = firstAlong(d, d.out(2), -2, k),
                gu = firstAlong(d, d.dy(0), -1, k), gvh = firstAlong(d, d.dy(2), -2, k);
    if (!gu && !gvh) {
        d.input(0) = matmul(u, rowsScaled(vh, d.dy(1)));
        return;
    }
    if (isComplex(a.dtype())) return refuseDerivative(d, "complex matrices, by U and V,");
    const auto skew = [](const Value& x) { return x - adjointOf(x); };
    const Value apart = eigenDifferences(s * s);
    Value inner;
    if (gu) inner = columnsScaled(skew(matmul(adjointOf(u), gu)), s);
    if (gvh) inner = plus(inner, rowsScaled(skew(matmul(vh, adjointOf(gvh))), s));
    inner = inner / apart;
    if (d.dy(1)) inner = inner + diagonalMatrix(d.dy(1));
    if (gu && !(m == k)) {
        const Value rest = gu / unsqueeze(s, -2);
        d.input(0) = matmul(matmul(u, inner) + rest - matmul(u, matmul(adjointOf(u), rest)), vh);
    } else if (gvh && !(n == k)) {
        const Value rest = gvh / unsqueeze(s, -1);
        d.input(0) = matmul(u, matmul(inner, vh) + rest - matmul(matmul(rest, adjointOf(vh)), vh));
    } else {
        d.input(0) = matmul(u, matmul(inner, vh));
    }
}

/// Moore and Penrose's inverse; singular values up to max(atol, rtol * largest) count as 0.
Result<ValueType> inferPseudoInverse(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", false));
    if (c.flag("hermitian") && differ(a.sizes.back(), a.sizes[a.sizes.size() - 2]))
        return c.fail("hermitian matrices are square, not " + a.text());
    return ValueType(batchType(a, {a.sizes.back(), a.sizes[a.sizes.size() - 2]}, a.dtype));
}
double spectralEpsilon(DType dtype) { return realTypeOf(dtype) == DType::F64 ? 0x1p-52 : 0x1p-23; }
EvalResult evalPseudoInverse(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor a = c.in("self"), atol = c.optional("atol"), rtol = c.optional("rtol");
    for (const Tensor& tolerance : {atol, rtol})
        if (tolerance.defined() && tolerance.numel() != 1) return c.fail("takes tolerances of one number only");
    const double absolute = atol.defined() ? toDouble(atol.item()) : 0;
    double relative = spectralEpsilon(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
    if (rtol.defined()) relative = toDouble(rtol.item());
    else if (absolute > 0) relative = 0;
    const char* why = nullptr;
    withMatrix(out.dtype(), [&](auto tag) {
        auto matrices = matricesOf<decltype(tag)>(a);
        for (auto& one : matrices) {
            if (c.flag("hermitian")) mirrorTriangle(one, false);
            if (const char* const problem = pseudoInverse(one, absolute, relative)) why = problem;
        }
        storeMatrices(matrices, out);
    });
    if (why) return c.fail(why);
    return out;
}
void derivePseudoInverse(Derivation& d) {
    const Value a = d.in(0), p = d.out(), ph = adjointOf(p), g = adjointOf(d.dy());
    const SymInt m = a.size(-2), n = a.size(-1);
    if (m.isInt() && n.isInt() && m.value() <= n.value()) {
        const Value k = matmul(g, p), kp = matmul(k, ph);
        d.input(0) = kp - adjointOf(matmul(p, k)) - matmul(matmul(a, p), kp) + matmul(matmul(ph, p), g - matmul(k, a));
    } else {
        const Value k = matmul(p, g), pk = matmul(ph, k);
        d.input(0) = matmul(matmul(g - matmul(a, k), p), ph) - adjointOf(matmul(k, p)) + pk - matmul(matmul(pk, p), a);
    }
}

// -- exponential

Result<ValueType> inferExponential(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor("self"));
    if (a.rank() < 2 || (allInts(a.sizes) && !(a.sizes.back() == a.sizes[a.sizes.size() - 2])))
        return c.fail("needs square matrices, not " + a.text());
    if (!isFloating(a.dtype) && !isComplex(a.dtype)) return c.fail("needs floating-point or complex matrices");
    return ValueType(batchType(a, {a.sizes.back(), a.sizes.back()}, a.dtype));
}
EvalResult evalExponential(const EvalContext& c) {
    Tensor out = c.result();
    withMatrix(out.dtype(), [&](auto tag) {
        auto matrices = matricesOf<decltype(tag)>(c.in(size_t{0}));
        for (auto& one : matrices) one = exponential(one);
        storeMatrices(matrices, out);
    });
    return out;
}
/// The upper right block of exp([A^H, G; 0, A^H]).
void deriveExponential(Derivation& d) {
    const Value ah = adjointOf(d.in(0)), zero = unary("aten.zeros_like.default", ah);
    const SymInt n = d.in(0).size(-1);
    const Value above = cat(d.builder(), {ah, d.dy()}, -1), below = cat(d.builder(), {zero, ah}, -1);
    const Value whole = d.call("aten.linalg_matrix_exp.default", {cat(d.builder(), {above, below}, -2)});
    d.input(0) = d.call("aten.slice.Tensor",
                        {d.call("aten.slice.Tensor", {whole, -2, 0, Argument(n)}), -1, Argument(n), Argument(n + n)});
}

constexpr OpDef kLinalgSpectralOps[] = {
    {.schema = "aten.linalg_qr.default(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
     .tags = Tag::Heavy,
     .infer = inferQr,
     .eval = evalQr,
     .derive = deriveQr,
     .samples = "f64[4, 3]\nf64[2, 3, 3]\nf64[3, 4]\nf64[4, 2], 'complete'\nf64[3, 2], 'r'\nf32[3, 2]\nc64[3, 2]"},
    {.schema = "aten.linalg_householder_product.default(Tensor input, Tensor tau) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferReflections,
     .eval = evalReflections,
     .samples = "f64[4, 3]<1, f64[3]<1\nf32[2, 3, 2]<1, f32[2, 2]<1\nf64[3, 3]<1, f64[2]<1"},
    {.schema =
         "aten._linalg_eigh.default(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
     .tags = Tag::Heavy,
     .infer = inferEigenHermitian,
     .eval = evalEigenHermitian,
     .derive = deriveEigenHermitian,
     .samples = "f64[3, 3], 'U', False\nf64[2, 4, 4], 'L', False\nf32[1, 1]\nc64[2, 2], 'L', False"},
    {.schema = "aten.linalg_eig.default(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
     .tags = Tag::Heavy,
     .infer = inferEigen,
     .eval = evalEigen,
     .derive = deriveEigen,
     .samples = "f32[1, 1]"},
    {.schema =
         "aten._linalg_svd.default(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
     .tags = Tag::Heavy,
     .infer = inferSvd,
     .eval = evalSvd,
     .derive = deriveSvd,
     .samples = "f64[4, 3], False, False\nf64[2, 2, 3], False, False\nc64[2, 2], False, False"},
    {.schema =
         "aten.linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferPseudoInverse,
     .eval = evalPseudoInverse,
     .derive = derivePseudoInverse,
     .samples = "f64[4, 3]\nf64[2, 2, 3]\nf64[3, 3], rtol = f64[]>0\nf32[3, 2]"},
    {.schema = "aten.linalg_matrix_exp.default(Tensor self) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExponential,
     .eval = evalExponential,
     .derive = deriveExponential,
     .samples = "f64[3, 3]\nf64[2, 2, 2]\nf32[2, 2]<1\nc64[2, 2]<1"},
};

}  // namespace

std::span<const OpDef> linalgSpectralOps() { return kLinalgSpectralOps; }

}  // namespace cutaway
