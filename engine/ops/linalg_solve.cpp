// Linear systems by LU factors, inverses and determinants.
#include "engine/ops/expanded.h"
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

// -- LU

Result<ValueType> inferLuFactor(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", false));
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back();
    return ValueType(TupleType{batchType(a, {rows, columns}, a.dtype, true),
                               batchType(a, {min(rows, columns)}, DType::I32), batchType(a, {}, DType::I32)});
}
EvalResult evalLuFactor(const EvalContext& c) {
    if (!c.flag("pivot", true)) return c.fail("pivot=False has no kernel on the CPU");
    Tensor factors = c.result(0);
    std::vector<int64_t> pivots, info;
    withMatrix(factors.dtype(), [&](auto tag) {
        auto matrices = matricesOf<decltype(tag)>(c.in("A"));
        for (auto& one : matrices) {
            std::vector<int64_t> exchanged;
            info.push_back(factorLu(one, exchanged));
            for (const int64_t row : exchanged) pivots.push_back(row + 1);  // counted from 1, as LAPACK does
        }
        storeMatrices(matrices, factors);
    });
    return TensorList{factors, storeIntegers(c, 1, pivots), storeIntegers(c, 2, info)};
}

/// The row exchanges of each matrix, counted from 0; an error where they lie outside it.
Result<std::vector<std::vector<int64_t>>> pivotsOf(const EvalContext& c, const Tensor& pivots, int64_t rows,
                                                   size_t count) {
    std::vector<std::vector<int64_t>> out;
    const Tensor flat = pivots.contiguous();
    const auto steps = static_cast<size_t>(pivots.size(-1));
    for (size_t k = 0; k < count; ++k) {
        out.emplace_back();
        for (size_t i = 0; i < steps; ++i) {
            const int64_t row = toInt(flat.item(static_cast<int64_t>(k * steps + i))) - 1;
            if (row < 0 || row >= rows) return c.fail("pivot " + std::to_string(row + 1) + " is not a row");
            out.back().push_back(row);
        }
    }
    return out;
}
/// One int32 pivot per row that takes part, for every matrix of the batch.
Result<void> checkPivots(const InferContext& c, std::string_view param, const TensorType& lu) {
    CT_TRY(const TensorType pivots, c.tensor(param));
    if (pivots.dtype != DType::I32) return c.fail("needs int32 pivots");
    SymDims wanted(lu.sizes.begin(), lu.sizes.end() - 2);
    wanted.push_back(min(lu.sizes[lu.sizes.size() - 2], lu.sizes.back()));
    if (pivots.rank() != static_cast<int64_t>(wanted.size()) ||
        (allInts(wanted) && allInts(pivots.sizes) && !(pivots.sizes == wanted)))
        return c.fail("the pivots " + pivots.text() + " are not those of " + lu.text());
    return {};
}
Result<ValueType> inferUnpack(const InferContext& c) {
    CT_TRY(const TensorType lu, c.tensor("LU_data"));
    if (lu.rank() < 2) return c.fail("needs matrices, not " + lu.text());
    CT_TRY_VOID(checkPivots(c, "LU_pivots", lu));
    const SymInt rows = lu.sizes[lu.sizes.size() - 2], columns = lu.sizes.back(), least = min(rows, columns);
    const TensorType none = TensorType::contiguous(lu.dtype, {SymInt(0)}, lu.device);
    const bool data = c.flag("unpack_data", true);
    return ValueType(TupleType{c.flag("unpack_pivots", true) ? batchType(lu, {rows, rows}, lu.dtype) : none,
                               data ? batchType(lu, {rows, least}, lu.dtype) : none,
                               data ? batchType(lu, {least, columns}, lu.dtype) : none});
}
EvalResult evalUnpack(const EvalContext& c) {
    const Tensor data = c.in("LU_data");
    TensorList out = {c.result(0), c.result(1), c.result(2)};
    std::optional<Error> problem;
    withMatrix(data.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto matrices = matricesOf<T>(data);
        const bool permutes = c.flag("unpack_pivots", true);
        Result<std::vector<std::vector<int64_t>>> pivots = std::vector<std::vector<int64_t>>(matrices.size());
        if (permutes) pivots = pivotsOf(c, c.in("LU_pivots"), data.size(-2), matrices.size());
        if (!pivots) {
            problem = std::move(pivots).error();
            return;
        }
        std::vector<Dense<T>> p, l(matrices.size()), u(matrices.size());
        for (size_t k = 0; k < matrices.size(); ++k) {
            p.push_back(permutationOf<T>((*pivots)[k], data.size(-2)));
            splitFactors(matrices[k], l[k], u[k]);
        }
        if (permutes) storeMatrices(p, out[0]);
        if (c.flag("unpack_data", true)) {
            storeMatrices(l, out[1]);
            storeMatrices(u, out[2]);
        }
    });
    if (problem) return *problem;
    return out;
}
Result<ValueType> inferLu(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", false));
    if (!c.flag("pivot", true)) return c.fail("pivot=False has no kernel on the CPU");
    const SymInt rows = a.sizes[a.sizes.size() - 2], columns = a.sizes.back(), least = min(rows, columns);
    return ValueType(TupleType{batchType(a, {rows, rows}, a.dtype), batchType(a, {rows, least}, a.dtype),
                               batchType(a, {least, columns}, a.dtype)});
}
EvalResult evalLu(const EvalContext& c) {
    TensorList out = {c.result(0), c.result(1), c.result(2)};
    withMatrix(out[0].dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<Dense<T>> p, l, u;
        for (auto& one : matricesOf<T>(c.in("A"))) {
            Dense<T> factors = one;
            std::vector<int64_t> pivots;
            factorLu(factors, pivots);
            p.push_back(permutationOf<T>(pivots, factors.rows));
            splitFactors(factors, l.emplace_back(), u.emplace_back());
        }
        storeMatrices(p, out[0]);
        storeMatrices(l, out[1]);
        storeMatrices(u, out[2]);
    });
    return out;
}
Result<ValueType> inferLuSolve(const InferContext& c) {
    CT_TRY(const TensorType lu, matricesAt(c, "LU", true));
    CT_TRY(const TensorType b, matricesAt(c, "B", false));
    const bool left = c.flag("left", true);
    const SymInt &n = lu.sizes.back(), &have = b.sizes[b.sizes.size() - (left ? 2 : 1)];
    if (differ(n, have)) return c.fail("the factors of " + lu.text() + " do not fit " + b.text());
    if (lu.dtype != b.dtype) return c.fail("factors and right side of different dtypes");
    CT_TRY_VOID(checkPivots(c, "pivots", lu));
    const SymDims shapes[] = {SymDims(lu.sizes.begin(), lu.sizes.end() - 2),
                              SymDims(b.sizes.begin(), b.sizes.end() - 2)};
    auto batch = broadcastSizes(shapes);
    if (!batch) return c.fail(batch.error().message);
    TensorType like = b;
    like.sizes = *batch;
    like.sizes.insert(like.sizes.end(), b.sizes.end() - 2, b.sizes.end());
    return ValueType(batchType(like, SymDims(b.sizes.end() - 2, b.sizes.end()), b.dtype, left));
}
EvalResult evalLuSolve(const EvalContext& c) {
    Tensor out = c.result();
    const bool left = c.flag("left", true), ofAdjoint = c.flag("adjoint");
    std::optional<Error> problem;
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto factors = matricesOf<T>(spreadBatch(c.in("LU"), out.sizes(), 2));
        auto sides = matricesOf<T>(spreadBatch(c.in("B"), out.sizes(), 2));
        auto pivots =
            pivotsOf(c, spreadBatch(c.in("pivots"), out.sizes(), 1), out.size(left ? -2 : -1), factors.size());
        if (!pivots) {
            problem = std::move(pivots).error();
            return;
        }
        for (size_t k = 0; k < sides.size(); ++k) {
            // X A = B is A^H X^H = B^H.
            Dense<T> b = left ? sides[k] : adjoint(sides[k]);
            solveLu(factors[k], (*pivots)[k], b, left == ofAdjoint);
            sides[k] = left ? b : adjoint(b);
        }
        storeMatrices(sides, out);
    });
    if (problem) return *problem;
    return out;
}

// -- systems, inverses, determinants

struct System {
    TensorType a, b;
    bool vector = false, left = true;
    SymDims result;
};
/// B is a vector (per matrix) if it has one dim, or the batch's dims and one.
Result<System> readSystem(const InferContext& c) {
    System s;
    CT_TRY(s.a, matricesAt(c, "A", true));
    CT_TRY(s.b, c.tensor("B"));
    s.left = c.flag("left", true);
    const SymDims batch(s.a.sizes.begin(), s.a.sizes.end() - 1);
    s.vector = s.b.rank() == 1 || (s.a.rank() - 1 == s.b.rank() && s.b.sizes == batch);
    if (s.a.dtype != s.b.dtype) return c.fail("matrix and right side of different dtypes");
    if (s.vector && !s.left) return c.fail("a vector stands on the right of the matrix: left=False needs matrices");
    if (!s.vector && s.b.rank() < 2) return c.fail("needs a right side of matrices or vectors, not " + s.b.text());
    const SymInt &n = s.a.sizes.back(),
                 &have = s.vector ? s.b.sizes.back() : s.b.sizes[s.b.sizes.size() - (s.left ? 2 : 1)];
    if (differ(n, have)) return c.fail("the matrices of " + s.a.text() + " do not fit " + s.b.text());
    const size_t last = s.vector ? 1 : 2;
    const SymDims shapes[] = {SymDims(s.a.sizes.begin(), s.a.sizes.end() - 2),
                              SymDims(s.b.sizes.begin(), s.b.sizes.end() - static_cast<int64_t>(last))};
    auto spread = broadcastSizes(shapes);
    if (!spread) return c.fail(spread.error().message);
    s.result = *spread;
    s.result.insert(s.result.end(), s.b.sizes.end() - static_cast<int64_t>(last), s.b.sizes.end());
    return s;
}
Result<ValueType> inferSolve(const InferContext& c) {
    CT_TRY(const System s, readSystem(c));
    const SymInt n = s.a.sizes.back();
    TensorType result = TensorType::contiguous(s.a.dtype, s.result, s.a.device);
    // Vectors of a batch too are laid out as if the batch and they were a matrix.
    if (s.left && s.result.size() >= 2) {
        TensorType like = result;
        result = batchType(like, SymDims(s.result.end() - 2, s.result.end()), s.a.dtype, true);
    }
    return ValueType(TupleType{result, batchType(s.a, {n, n}, s.a.dtype, true), batchType(s.a, {n}, DType::I32),
                               batchType(s.a, {}, DType::I32)});
}
EvalResult evalSolve(const EvalContext& c) {
    const System s = *readSystem(c);
    Tensor result = c.result(0), factors = c.result(1);
    std::vector<int64_t> allPivots, info;
    withMatrix(factors.dtype(), [&](auto tag) {
        using T = decltype(tag);
        Tensor a = c.in("A"), b = c.in("B"), target = result;
        if (s.vector) {
            b = b.view(
                [&] {
                    Dims d = b.sizes();
                    d.push_back(1);
                    return d;
                }(),
                [&] {
                    Dims d = b.strides();
                    d.push_back(1);
                    return d;
                }(),
                b.offset());
            target = result.view(
                [&] {
                    Dims d = result.sizes();
                    d.push_back(1);
                    return d;
                }(),
                [&] {
                    Dims d = result.strides();
                    d.push_back(1);
                    return d;
                }(),
                result.offset());
        }
        auto own = matricesOf<T>(a);
        for (auto& one : own) {
            std::vector<int64_t> pivots;
            info.push_back(factorLu(one, pivots));
            for (const int64_t row : pivots) allPivots.push_back(row + 1);
        }
        storeMatrices(own, factors);
        const auto spread = matricesOf<T>(spreadBatch(a, target.sizes(), 2));
        auto sides = matricesOf<T>(spreadBatch(b, target.sizes(), 2));
        for (size_t k = 0; k < sides.size(); ++k) {
            Dense<T> matrix = spread[k], side = s.left ? sides[k] : adjoint(sides[k]);
            std::vector<int64_t> pivots;
            factorLu(matrix, pivots);
            solveLu(matrix, pivots, side, !s.left);
            sides[k] = s.left ? side : adjoint(side);
        }
        storeMatrices(sides, target);
    });
    for (const int64_t singular : info)
        if (singular != 0 && c.flag("check_errors")) return c.fail("a matrix is singular");
    return TensorList{result, factors, storeIntegers(c, 2, allPivots), storeIntegers(c, 3, info)};
}
void deriveSolve(Derivation& d) {
    const auto s = read(d, readSystem(d));
    if (!s || !d.dy(0)) return;
    const Value g = d.call("aten.linalg_solve.default", {adjointOf(d.in("A")), d.dy(0)}, {{"left", s->left}});
    if (d.needs(1)) d.input(1) = g;
    if (!d.needs(0)) return;
    const Value x = d.out(0);
    if (s->vector) d.input(0) = -matmul(unsqueeze(g, -1), conjugated(unsqueeze(x, -2)));
    else d.input(0) = s->left ? -matmul(g, adjointOf(x)) : -matmul(adjointOf(x), g);
}

Result<ValueType> inferInverse(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", true));
    return ValueType(
        TupleType{batchType(a, {a.sizes.back(), a.sizes.back()}, a.dtype, true), batchType(a, {}, DType::I32)});
}
EvalResult evalInverse(const EvalContext& c) {
    Tensor out = c.result(0);
    std::vector<int64_t> info;
    withMatrix(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        auto matrices = matricesOf<T>(c.in("A"));
        for (auto& one : matrices) {
            Dense<T> inverse = Dense<T>::identity(one.rows);
            std::vector<int64_t> pivots;
            info.push_back(factorLu(one, pivots));
            solveLu(one, pivots, inverse);
            one = inverse;
        }
        storeMatrices(matrices, out);
    });
    for (const int64_t singular : info)
        if (singular != 0 && c.flag("check_errors")) return c.fail("a matrix is singular");
    return TensorList{out, storeIntegers(c, 1, info)};
}

/// result(s), LU, pivots of the determinant; `logarithm` gives its sign (or direction) and the logarithm of its size.
template <bool logarithm>
Result<ValueType> inferDeterminant(const InferContext& c) {
    CT_TRY(const TensorType a, matricesAt(c, "A", true));
    const SymInt n = a.sizes.back();
    const TensorType factors = batchType(a, {n, n}, a.dtype, true), pivots = batchType(a, {n}, DType::I32);
    if (logarithm)
        return ValueType(TupleType{batchType(a, {}, a.dtype), batchType(a, {}, realTypeOf(a.dtype)), factors, pivots});
    return ValueType(TupleType{batchType(a, {}, a.dtype), factors, pivots});
}
/// LAPACK reads columns. For a row-major matrix PyTorch saves the copy and factors the transpose.
bool factorsOfTranspose(const TensorType& a) { return a.isContiguous() && !isComplex(a.dtype); }
template <bool logarithm>
EvalResult evalDeterminant(const EvalContext& c) {
    constexpr size_t kFactors = logarithm ? 2 : 1;
    Tensor first = c.result(0), factors = c.result(kFactors);
    std::vector<double> sizes;
    std::vector<int64_t> allPivots;
    withMatrix(factors.dtype(), [&](auto tag) {
        using T = decltype(tag);
        auto matrices = matricesOf<T>(c.in("A"));
        std::vector<T> values;
        const bool transposed = factorsOfTranspose(*c.tensor("A"));
        for (auto& one : matrices) {
            std::vector<int64_t> pivots;
            if (transposed) one = adjoint(one);
            factorLu(one, pivots);
            const Determinant<T> found = determinantOf(one, pivots);
            for (const int64_t row : pivots) allPivots.push_back(row + 1);
            values.push_back(logarithm ? found.direction : found.value);
            sizes.push_back(found.logarithm);
        }
        storeMatrices(matrices, factors);
        unpackElements(values, first);
    });
    TensorList out = {first};
    if (logarithm) unpackElements(sizes, out.emplace_back(c.result(1)));
    out.push_back(factors);
    out.push_back(storeIntegers(c, kFactors + 1, allPivots));
    return out;
}
/// A^-H D from the factors, D the diagonal matrix of the numbers.
Value dividedDiagonal(Derivation& d, const Value& numbers, size_t factors) {
    const Value column = unsqueeze(numbers, -1);
    SymDims sizes = column.sizes();
    sizes.back() = d.in(0).size(-1);
    return d.call("aten.linalg_lu_solve.default",
                  {d.out(factors), d.out(factors + 1), diagonalMatrix(expand(column, sizes))},
                  {{"adjoint", !factorsOfTranspose(d.in(0).type())}});
}

constexpr OpDef kLinalgSolveOps[] = {
    {.schema =
         "aten.linalg_lu_factor_ex.default(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
     .tags = Tag::Heavy,
     .infer = inferLuFactor,
     .eval = evalLuFactor,
     .derive =
         [](Derivation& d) {
             if (!d.dy(0)) return;
             const Value parts = d.call("aten.lu_unpack.default", {d.out(0), d.out(1)}), l = parts[1], u = parts[2];
             const auto part = [&](int64_t dim, const Value& like) {
                 if (d.dy(0).size(dim) == like.size(dim)) return d.dy(0);
                 return d.call("aten.slice.Tensor", {d.dy(0), dim, 0, Argument(like.size(dim))});
             };
             d.input(0) = throughFactors(d, parts[0], l, u, part(-1, l), part(-2, u));
         },
     .samples = "f32[3, 3]\nf64[2, 4, 3]\nf64[3, 4]\nc64[2, 2]\nf32[0, 0]"},
    {.schema =
         "aten.lu_unpack.default(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
     .infer = inferUnpack,
     .eval = evalUnpack,
     .derive =
         [](Derivation& d) {
             if (d.dy(1) || d.dy(2)) d.input(0) = packedFactors(d, d.dy(1), d.dy(2));
         },
     .samples = "f64[8, 8], i32[8]>0\nf64[2, 8, 8], i32[2, 8]>0, False"},
    {.schema = "aten.linalg_lu.default(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
     .tags = Tag::Heavy,
     .infer = inferLu,
     .eval = evalLu,
     .derive =
         [](Derivation& d) {
             if (d.dy(1) || d.dy(2)) d.input(0) = throughFactors(d, d.out(0), d.out(1), d.out(2), d.dy(1), d.dy(2));
         },
     .samples = "f32[3, 3]\nf64[2, 4, 3]\nf64[3, 4]\nc64[2, 2]"},
    {.schema =
         "aten.linalg_lu_solve.default(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferLuSolve,
     .eval = evalLuSolve,
     .derive = deriveLuSolve,
     .samples =
         "f64[8, 8], i32[8]>0, f64[8, 2]\nf64[8, 8], i32[8]>0, f64[2, 2, 8], left = False, adjoint = True\nc64[8, 8], i32[8]>0, c64[8, 1], adjoint = True"},
    shorthand(
        "aten.lu_solve.default(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.linalg_lu_solve.default", {d.in(1), d.in(2), d.in(0)});
        },
        "f64[8, 2], f64[8, 8], i32[8]>0"),
    shorthand(
        "aten._lu_with_info.default(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten.linalg_lu_factor_ex.default", {d.in(0)},
                                     {{"pivot", d.arg("pivot")}, {"check_errors", false}});
            return {all[0], all[1], all[2]};
        },
        "f32[3, 3]\nf64[2, 4, 3], True, False"),
    // X with A X = B (or X A = B), the factors it took, and whether A was singular.
    {.schema =
         "aten._linalg_solve_ex.default(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
     .tags = Tag::Heavy,
     .infer = inferSolve,
     .eval = evalSolve,
     .derive = deriveSolve,
     .samples =
         "f64[3, 3], f64[3, 2]\nf64[3, 3], f64[3]\nf64[2, 3, 3], f64[3, 2]\nf64[3, 3], f64[2, 3], left = False\nf64[2, 3, 3], f64[2, 3]\nf32[2, 2], f32[2, 2]\nc64[2, 2], c64[2, 3]"},
    {.schema = "aten.linalg_inv_ex.default(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     .tags = Tag::Heavy,
     .infer = inferInverse,
     .eval = evalInverse,
     .derive =
         [](Derivation& d) {
             if (d.dy(0)) d.input(0) = -matmul(adjointOf(d.out(0)), matmul(d.dy(0), adjointOf(d.out(0))));
         },
     .samples = "f64[3, 3]\nf64[2, 3, 3]\nf32[2, 2]\nc64[2, 2]\nf32[0, 0]"},
    {.schema = "aten._linalg_det.default(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
     .tags = Tag::Heavy,
     .infer = inferDeterminant<false>,
     .eval = evalDeterminant<false>,
     .derive =
         [](Derivation& d) {
             if (d.dy(0)) d.input(0) = dividedDiagonal(d, d.dy(0) * conjugated(d.out(0)), 1);
         },
     .samples = "f64[3, 3]\nf32[2, 3, 3]\nc64[2, 2]\nf32[0, 0]"},
    {.schema = "aten._linalg_slogdet.default(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     .tags = Tag::Heavy,
     .infer = inferDeterminant<true>,
     .eval = evalDeterminant<true>,
     .derive =
         [](Derivation& d) {
             if (d.dy(0) && isComplex(d.dy(0).dtype()))
                 return d.builder().fail(
                     unsupported(d.op().name() + ": the direction of a complex determinant has no derivative here"));
             if (d.dy(1)) d.input(0) = dividedDiagonal(d, convert(d.dy(1), d.in(0).dtype()), 2);
         },
     .samples = "f64[3, 3]\nf32[2, 3, 3]\nf32[0, 0]"},
};

}  // namespace

std::span<const OpDef> linalgSolveOps() { return kLinalgSolveOps; }

}  // namespace cutaway
