// Least squares, reflections as LAPACK stores them, and systems with symmetric matrices that are not definite.
#include <cmath>

#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

// -- least squares

struct LeastSquares {
    TensorType a, b;
    bool vector = false, residuals = false, ranked = false;
    SymDims batch, columns;  // of the solution; no columns of vectors
};
Result<LeastSquares> readLeastSquares(const InferContext& c) {
    LeastSquares s;
    CT_TRY(s.a, matricesAt(c, "self", false));
    CT_TRY(s.b, c.tensor("b"));
    const std::string driver = c.has("driver") ? c.text("driver") : "gelsy";
    if (driver == "gelsd" || driver == "gelss")
        return unsupported(
            c.op().name() + ": whether there are residuals depends on the values with driver '" + driver + "'", {},
            {"use driver 'gels' or 'gelsy', or linalg_pinv"});
    if (driver != "gels" && driver != "gelsy") return c.fail("has no driver '" + driver + "': give gels or gelsy");
    if (s.a.dtype != s.b.dtype) return c.fail("matrix and right side of different dtypes");
    const SymInt &rows = s.a.sizes[s.a.sizes.size() - 2], &width = s.a.sizes.back();
    const SymDims lines(s.a.sizes.begin(), s.a.sizes.end() - 1);
    s.vector = s.b.rank() == s.a.rank() - 1 && !differ(s.b.sizes, lines);
    if (!s.vector && s.b.rank() < 2) return c.fail("needs a right side of vectors or matrices, not " + s.b.text());
    const SymInt& have = s.b.sizes[s.b.sizes.size() - (s.vector ? 1 : 2)];
    if (differ(have, rows)) return c.fail("the matrices of " + s.a.text() + " do not fit " + s.b.text());
    const SymDims shapes[] = {SymDims(s.a.sizes.begin(), s.a.sizes.end() - 2),
                              SymDims(s.b.sizes.begin(), s.b.sizes.end() - (s.vector ? 1 : 2))};
    auto batch = broadcastSizes(shapes);
    if (!batch) return c.fail(batch.error().message);
    s.batch = *batch;
    if (!s.vector) s.columns = {s.b.sizes.back()};
    s.ranked = driver == "gelsy";
    if (!s.ranked && (!rows.isInt() || !width.isInt()))
        return c.fail(
            "whether there are residuals depends on symbolic sizes; give the sizes as numbers, or driver 'gelsy'");
    s.residuals = !s.ranked && rows.value() > width.value();
    return s;
}
SymDims joinedSizes(SymDims first, const SymDims& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}
/// The solutions lie in what LAPACK overwrote, the right side: as many rows as the longer side of the matrix.
Result<ValueType> inferLeastSquares(const InferContext& c) {
    CT_TRY(const LeastSquares s, readLeastSquares(c));
    const SymInt &rows = s.a.sizes[s.a.sizes.size() - 2], &width = s.a.sizes.back(), longer = max(rows, width);
    const auto made = [&](SymDims sizes, DType dtype) {
        return TensorType::contiguous(dtype, std::move(sizes), s.a.device);
    };
    TensorType solution = made(joinedSizes(joinedSizes(s.batch, {width}), s.columns), s.a.dtype);
    SymInt step = s.vector ? longer : longer * s.columns[0];
    solution.strides.assign(solution.sizes.size(), SymInt(1));
    for (size_t i = s.batch.size(); i-- > 0;) {
        solution.strides[i] = step;
        step = step * s.batch[i];
    }
    if (!s.vector) solution.strides.back() = longer;
    const TensorType none = made({SymInt(0)}, realTypeOf(s.a.dtype));
    return ValueType(TupleType{
        solution, s.residuals ? made(joinedSizes(s.batch, s.columns), none.dtype) : none,
        s.ranked ? made(SymDims(s.a.sizes.begin(), s.a.sizes.end() - 2), DType::I64) : made({SymInt(0)}, DType::I64),
        none});
}
/// The shortest of the solutions whose squared distances are least: Moore and Penrose's inverse times the right side.
Values leastSquares(Decomposition& d) {
    const auto s = read(d, readLeastSquares(d));
    if (!s) return Value(d.builder(), nullptr);
    const Value a = d.in("self"), b = s->vector ? unsqueeze(d.in("b"), -1) : d.in("b");
    const NamedArguments least = {{"rtol", s->ranked ? d.arg("rcond") : Argument()}};
    const Value solution = matmul(d.call("aten.linalg_pinv.atol_rtol_float", {a}, least), b);
    const auto empty = [&](DType dtype) {
        return full(d.builder(), {SymInt(0)}, Scalar(int64_t{0}), dtype, a.type().device);
    };
    const DType real = realTypeOf(a.dtype());
    Value residuals = empty(real);
    if (s->residuals) {
        const Value apart = unary("aten.abs.default", b - matmul(a, solution));
        residuals = sum(apart * apart, {-2}, false);
    }
    const Value rank = s->ranked ? d.call("aten.linalg_matrix_rank.atol_rtol_float", {a}, least) : empty(DType::I64);
    const auto asGiven = [&](const Value& x) { return s->vector ? squeezeDims(x, {-1}) : x; };
    return {asGiven(solution), s->residuals ? asGiven(residuals) : residuals, rank, empty(real)};
}

// -- reflections

Result<ValueType> inferGeqrf(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", false));
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back();
    return ValueType(
        TupleType{batchType(a, {rows, columns}, a.dtype, true), batchType(a, {min(rows, columns)}, a.dtype)});
}
EvalResult evalGeqrf(const EvalContext& c) {
    Tensor a = c.result(0), tau = c.result(1);
    withMatrix(a.dtype(), [&](auto tag) {
        using T = decltype(tag);
        auto matrices = matricesOf<T>(c.in(size_t{0}));
        std::vector<T> factors;
        for (auto& one : matrices) {
            std::vector<T> own;
            factorQr(one, own);
            factors.insert(factors.end(), own.begin(), own.end());
        }
        storeMatrices(matrices, a);
        unpackElements(factors, tau);
    });
    return TensorList{a, tau};
}
/// The whole square matrix that the reflections make, times the other from the left or the right.
Result<ValueType> inferReflected(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", false));
    CT_TRY(const TensorType tau, c.tensor("input2"));
    CT_TRY(const TensorType other, matricesAt(c, "input3", false));
    const SymInt &rows = a.sizes[a.sizes.size() - 2],
                 &fits = other.sizes[other.sizes.size() - (c.flag("left", true) ? 2 : 1)];
    const SymDims batch(a.sizes.begin(), a.sizes.end() - 2);
    if (tau.rank() != a.rank() - 1 || differ(SymDims(tau.sizes.begin(), tau.sizes.end() - 1), batch) ||
        other.rank() != a.rank() || differ(SymDims(other.sizes.begin(), other.sizes.end() - 2), batch))
        return c.fail(a.text() + ", " + tau.text() + " and " + other.text() + " are not of one batch");
    if (differ(rows, fits)) return c.fail("the reflections of " + a.text() + " do not fit " + other.text());
    if (!rows.isInt() || !tau.sizes.back().isInt() || !a.sizes.back().isInt())
        return c.fail("needs reflections of known sizes, not " + a.text());
    if (tau.sizes.back().value() > a.sizes.back().value() || tau.sizes.back().value() > rows.value())
        return c.fail("there are more factors in " + tau.text() + " than reflections in " + a.text());
    if (a.dtype != tau.dtype || a.dtype != other.dtype) return c.fail("operands of different dtypes");
    return ValueType(batchType(other, SymDims(other.sizes.end() - 2, other.sizes.end()), other.dtype, true));
}
EvalResult evalReflected(const EvalContext& c) {
    Tensor out = c.result();
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto reflections = matricesOf<T>(c.in("self"));
        const std::vector<T> factors = packElements<T>(c.in("input2"));
        auto sides = matricesOf<T>(c.in("input3"));
        const auto count = static_cast<int64_t>(factors.size()) / std::max<int64_t>(std::ssize(sides), 1);
        for (size_t k = 0; k < sides.size(); ++k) {
            const auto first = factors.begin() + static_cast<int64_t>(k) * count;
            applyReflections(reflections[k], std::vector<T>(first, first + count), sides[k], c.flag("left", true),
                             c.flag("transpose"));
        }
        storeMatrices(sides, out);
    });
    return out;
}

/// As graphs see it, so that it is differentiated in all three.
Values reflected(Decomposition& d) {
    const Value a = d.in("self"), tau = d.in("input2"), other = d.in("input3");
    const int64_t rows = a.size(-2).value(), count = tau.size(-1).value();
    const bool left = d.flag("left", true), transpose = d.flag("transpose");
    if (const auto few = checkPieces(d, count); !few) {
        d.builder().fail(few.error());
        return Value(d.builder(), nullptr);
    }
    // One reflection after the other: x - factor v (v^H x), v having a one and what stands below it in its column.
    Value x = other;
    for (int64_t step = 0; step < count; ++step) {
        const int64_t i = left == transpose ? step : count - 1 - step;
        const Value below = d.call("aten.slice.Tensor", {d.call("aten.slice.Tensor", {a, -1, i, i + 1}), -2, i + 1});
        const SymDims batch(a.sizes().begin(), a.sizes().end() - 2);
        SymDims unit = batch, above = batch;
        for (const SymInt& size : {SymInt(1), SymInt(1)}) unit.push_back(size);
        for (const SymInt& size : {SymInt(i), SymInt(1)}) above.push_back(size);
        std::vector<Value> parts = {full(d.builder(), above, Scalar(int64_t{0}), a.dtype(), a.type().device),
                                    full(d.builder(), unit, Scalar(int64_t{1}), a.dtype(), a.type().device), below};
        if (i == 0) parts.erase(parts.begin());
        if (i + 1 == rows) parts.pop_back();
        const Value v = parts.size() == 1 ? parts[0] : cat(d.builder(), parts, a.rank() - 2);
        Value factor = unsqueeze(d.call("aten.slice.Tensor", {tau, -1, i, i + 1}), -1);
        if (transpose) factor = conjugated(factor);
        x = left ? x - matmul(v * factor, matmul(adjointOf(v), x)) : x - matmul(matmul(x, v) * factor, adjointOf(v));
    }
    return x;
}

// -- symmetric matrices, as L D L^T with blocks of one or two rows in D

Result<ValueType> inferSymmetricFactors(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "self", true));
    const SymInt n = a.sizes.back();
    return ValueType(
        TupleType{batchType(a, {n, n}, a.dtype, true), batchType(a, {n}, DType::I32), batchType(a, {}, DType::I32)});
}
EvalResult evalSymmetricFactors(const EvalContext& c) {
    Tensor out = c.result(0);
    std::vector<int64_t> pivots, singular;
    withMatrix(out.dtype(), [&](auto tag) {
        auto matrices = matricesOf<decltype(tag)>(c.in(size_t{0}));
        for (auto& one : matrices) {
            std::vector<int64_t> own;
            singular.push_back(factorSymmetric(one, c.flag("hermitian"), own));
            pivots.insert(pivots.end(), own.begin(), own.end());
        }
        storeMatrices(matrices, out);
    });
    for (const int64_t row : singular)
        if (row != 0 && c.flag("check_errors")) return c.fail("a matrix is singular");
    return TensorList{out, storeIntegers(c, 1, pivots), storeIntegers(c, 2, singular)};
}
Result<ValueType> inferSymmetricSolution(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "LD", true));
    CT_TRY(const TensorType b, matricesAt(c, "B", false));
    CT_TRY(const TensorType pivots, c.tensor("pivots"));
    if (a.dtype != b.dtype) return c.fail("factors and right side of different dtypes");
    if (differ(a.sizes.back(), b.sizes[b.sizes.size() - 2]))
        return c.fail("the factors of " + a.text() + " do not fit " + b.text());
    const SymDims lines(a.sizes.begin(), a.sizes.end() - 1);
    if (pivots.dtype != DType::I32 || pivots.sizes.size() != lines.size() || differ(pivots.sizes, lines))
        return c.fail("needs int32 pivots of " + a.text() + ", not " + pivots.text());
    const SymDims shapes[] = {SymDims(a.sizes.begin(), a.sizes.end() - 2), SymDims(b.sizes.begin(), b.sizes.end() - 2)};
    auto batch = broadcastSizes(shapes);
    if (!batch) return c.fail(batch.error().message);
    TensorType like = b;
    like.sizes = joinedSizes(*batch, SymDims(b.sizes.end() - 2, b.sizes.end()));
    return ValueType(batchType(like, SymDims(b.sizes.end() - 2, b.sizes.end()), b.dtype, true));
}
EvalResult evalSymmetricSolution(const EvalContext& c) {
    Tensor out = c.result();
    std::optional<Error> wrong;
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto factors = matricesOf<T>(spreadBatch(c.in("LD"), out.sizes(), 2));
        auto sides = matricesOf<T>(spreadBatch(c.in("B"), out.sizes(), 2));
        const auto pivots = packElements<int64_t>(spreadBatch(c.in("pivots"), out.sizes(), 1));
        for (size_t k = 0; k < sides.size(); ++k) {
            const int64_t n = factors[k].rows;
            const auto first = pivots.begin() + static_cast<int64_t>(k) * n;
            const std::vector<int64_t> own(first, first + n);
            if (!areSymmetricPivots(own)) wrong = c.fail("the pivots are not those of a factorization");
            if (wrong) return;
            solveSymmetric(factors[k], own, c.flag("hermitian"), sides[k]);
        }
        storeMatrices(sides, out);
    });
    if (wrong) return *wrong;
    return out;
}

constexpr OpDef kLinalgSymmetricOps[] = {
    {.schema =
         "aten.linalg_lstsq.default(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor "
         "singular_values)",
     .tags = Tag::Heavy,
     .infer = inferLeastSquares,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = leastSquares,
     .samples =
         "f64[5, 3], f64[5, 2]\nf32[3, 3], f32[3]\nf64[2, 3, 5], f64[2, 3, 1]\nf64[2, 5, 3], f64[2, 5, 2], driver = 'gels'\nf64[3, 5], f64[3, 2], driver = 'gels'\nf64[2, 5, 3], f64[2, 5]"},
    // R in the upper triangle, the reflections' vectors below it, and their factors.
    {.schema = "aten.geqrf.default(Tensor self) -> (Tensor a, Tensor tau)",
     .infer = inferGeqrf,
     .eval = evalGeqrf,
     .samples = "f64[4, 3]\nf32[2, 3, 3]\nf64[2, 4]\nc64[3, 2]\nf32[0, 3]"},
    {.schema =
         "aten.ormqr.default(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
     .infer = inferReflected,
     .eval = evalReflected,
     .expand = Expand::Composite,
     .decompose = reflected,
     .samples =
         "f64[4, 3]<1, f64[3]<1, f64[4, 2]\nf64[4, 3]<1, f64[3]<1, f64[2, 4], False, True\nf32[2, 3, 3]<1, f32[2, 2]<1, f32[2, 3, 2], True, True\nf64[3, 3]<1, f64[3]<1, f64[3, 3], False"},
    {.schema =
         "aten.linalg_ldl_factor_ex.default(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
     .infer = inferSymmetricFactors,
     .eval = evalSymmetricFactors,
     .samples =
         "f64[4, 4]\nf32[2, 3, 3]\nc64[4, 4]\nc64[4, 4], hermitian = True\nf64[6, 6]<1\nf64[1, 1], check_errors = True\nf32[0, 0]"},
    shorthand(
        "aten.linalg_ldl_factor.default(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten.linalg_ldl_factor_ex.default", {d.arg(0)},
                                     {{"hermitian", d.flag("hermitian")}, {"check_errors", true}});
            return {all[0], all[1]};
        },
        "f64[4, 4]\nc64[3, 3], hermitian = True"),
    {.schema = "aten.linalg_ldl_solve.default(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
     .infer = inferSymmetricSolution,
     .eval = evalSymmetricSolution,
     .samples =
         "f64[8, 8], i32[8]>0, f64[8, 2]\nf32[2, 8, 8], i32[2, 8]>0, f32[2, 8, 1]\nc64[8, 8], i32[8]>0, c64[8, 3], hermitian = True"},
};

}  // namespace

std::span<const OpDef> linalgSymmetricOps() { return kLinalgSymmetricOps; }

}  // namespace cutaway
