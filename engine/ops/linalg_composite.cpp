// The public names of linear algebra, written with the kernels' ops and with each other. Norms stand in
// linalg_norm.cpp.
#include <cmath>

#include "engine/ops/expanded.h"
#include "engine/ops/linalg_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Value firstOf(const Value& tuple) { return tuple ? tuple[0] : tuple; }
Value inverse(Decomposition& d, const Value& a) { return firstOf(d.call("aten.linalg_inv_ex.default", {a})); }

Values powerOf(Decomposition& d) {
    const auto exponent = read(d, d.integer("n"));
    if (!exponent) return Value(d.builder(), nullptr);
    int64_t n = *exponent;
    Value base = d.in(0);
    if (base.rank() < 2 || !(base.size(-1) == base.size(-2)))
        return refuse(d, "needs square matrices, not " + base.type().text());
    if (n == 0) {
        const Value like = d.call("aten.clone.default", {base}, {{"memory_format", MemoryFormat::Contiguous}});
        const Value one = d.call("aten.eye.m", {Argument(base.size(-2)), Argument(base.size(-1))},
                                 {{"dtype", base.dtype()}, {"device", base.type().device}, {"pin_memory", false}});
        return d.call("aten.copy.default", {like, one});
    }
    if (n == std::numeric_limits<int64_t>::min())
        return refuse(d, "the power " + std::to_string(n) + " cannot be negated");
    if (n < 0) base = unary("aten.linalg_inv.default", base);
    n = std::abs(n);
    if (n == 1)
        return *exponent == 1 ? d.call("aten.clone.default", {base}, {{"memory_format", MemoryFormat::Contiguous}})
                              : base;
    if (n == 3) return matmul(matmul(base, base), base);
    Value squares, result;
    for (; n > 0; n /= 2) {
        squares = squares ? matmul(squares, squares) : base;
        if (n % 2 == 1) result = result ? matmul(result, squares) : squares;
    }
    return result;
}

// -- ranks

/// A tolerance as a 0-d tensor; of an op that takes numbers, 0.0 where it is not given.
Value tolerance(Decomposition& d, const char* param, double fallback) {
    if (d.arg(param).node() != nullptr) return d.in(param);
    const Device device = d.in(0).type().device;
    const double value = d.has(param) ? d.real(param) : fallback;
    return d.call("aten.full.default", {Argument(std::vector<int64_t>{}), value},
                  {{"dtype", DType::F64}, {"layout", Layout::Strided}, {"device", device}});
}
/// Both tolerances; a relative one that is not given follows from the dtype and the sizes, or is 0 beside an absolute
/// one.
std::optional<std::pair<Value, Value>> tolerances(Decomposition& d) {
    const Value a = d.in(0);
    const bool numbers = d.op().schema()->params[1].kind != ParamKind::Tensor;
    const bool absolute = d.has("atol") && (!numbers || d.real("atol") > 0);
    if (a.rank() < 2) {
        refuse(d, "needs matrices, not " + a.type().text());
        return std::nullopt;
    }
    double epsilon = 0;
    SymInt longest = 1;
    if (!d.has("rtol") && !(numbers && absolute)) {
        epsilon = realTypeOf(a.dtype()) == DType::F64 ? 0x1p-52 : 0x1p-23;
        longest = max(a.size(-2), a.size(-1));
    }
    if (longest.isInt()) epsilon *= static_cast<double>(longest.value());
    Value atol = !numbers && !d.has("atol") ? full(d.builder(), {}, Scalar(int64_t{0}), DType::F64, a.type().device)
                                            : tolerance(d, "atol", 0.0);
    Value rtol = tolerance(d, "rtol", numbers && absolute ? 0.0 : epsilon);
    if (!longest.isInt()) rtol = d.call("aten.mul.Scalar", {rtol, Argument(longest)});
    if (!numbers && absolute && !d.has("rtol"))
        rtol = where(compareScalar("gt", atol, int64_t{0}), unary("aten.zeros_like.default", rtol), rtol);
    return std::pair(atol, rtol);
}
/// How many singular values exceed max(atol, rtol * largest).
Values rank(Decomposition& d) {
    const auto limits = tolerances(d);
    if (!limits) return Value(d.builder(), nullptr);
    const Value a = d.in(0);
    if (numel(a.sizes()) == SymInt(0))
        return full(d.builder(), SymDims(a.sizes().begin(), a.sizes().end() - 2), Scalar(int64_t{0}), DType::I64,
                    a.type().device);
    Value values, largest;
    if (d.flag("hermitian")) {
        values = unary("aten.abs.default", unary("aten.linalg_eigvalsh.default", d.in(0)));
        largest = d.call("aten.amax.default", {values, Argument(std::vector<int64_t>{-1}), true});
    } else {
        values = unary("aten.linalg_svdvals.default", d.in(0));
        largest = d.call("aten.slice.Tensor", {values, -1, 0, 1});
    }
    const Value relative = unsqueeze(limits->second, -1) * largest;
    const Value limit = d.call("aten.maximum.default", {unsqueeze(limits->first, -1), relative});
    return sum(d.call("aten.gt.Tensor", {values, limit}), {-1}, false);
}

// -- shapes

Values solveTensor(Decomposition& d) {
    Value a = d.in(0);
    const Value b = d.in(1);
    if (d.has("dims")) {
        std::vector<int64_t> order;
        const auto given = read(d, d.dims("dims", a.rank(), false));
        if (!given) return Value(d.builder(), nullptr);
        std::vector<int64_t> moved = *given;
        if (a.rank() == 0) moved.clear();
        for (int64_t dim = 0; dim < a.rank(); ++dim)
            if (std::find(moved.begin(), moved.end(), dim) == moved.end()) order.push_back(dim);
        order.insert(order.end(), moved.begin(), moved.end());
        a = permute(a, order);
    }
    if (b.rank() > a.rank()) return refuse(d, "the right side has more dims than the tensor");
    const SymDims solution(a.sizes().begin() + b.rank(), a.sizes().end());
    const SymInt rows = numel(solution), elements = numel(b.sizes());
    if (differ(rows, elements)) return refuse(d, "the tensor does not unfold into a square matrix");
    return reshape(d.call("aten.linalg_solve.default", {reshape(a, {rows, rows}), reshape(b, {elements})}), solution);
}
Values invertTensor(Decomposition& d) {
    const Value a = d.in(0);
    const auto given = read(d, d.integer("ind", 2));
    if (!given) return Value(d.builder(), nullptr);
    if (*given <= 0 || *given > a.rank()) return refuse(d, "ind must be one of the tensor's dims");
    const auto middle = a.sizes().begin() + *given;
    const SymDims rows(a.sizes().begin(), middle), columns(middle, a.sizes().end());
    if (differ(numel(rows), numel(columns))) return refuse(d, "the tensor does not unfold into a square matrix");
    SymDims sizes = columns;
    sizes.insert(sizes.end(), rows.begin(), rows.end());
    return reshape(inverse(d, reshape(a, {numel(rows), numel(columns)})), sizes);
}
Values powersOf(Decomposition& d) {
    const Value x = d.in(0).rank() == 0 ? unsqueeze(d.in(0), 0) : d.in(0);
    if (isHalf(x.dtype()) || x.dtype() == DType::Bool)
        return refuse(d, "has no kernel for " + std::string(info(x.dtype()).torchName));
    SymInt count = x.size(-1);
    if (d.has("N")) {
        const auto given = read(d, d.size("N"));
        if (!given) return Value(d.builder(), nullptr);
        count = *given;
    }
    if (exceeds(2, count)) return refuse(d, "needs at least two columns");
    SymDims sizes = x.sizes(), first = x.sizes();
    sizes.push_back(count - SymInt(1));
    first.push_back(1);
    const Value powers = d.call("aten.cumprod.default", {expand(unsqueeze(x, -1), sizes), -1});
    const Value ones = d.call("aten.new_ones.default", {powers, Argument(first)}, {{"pin_memory", false}});
    return cat(d.builder(), {ones, powers}, -1);
}
Values crossProduct(Decomposition& d, int64_t dim) {
    const SymDims shapes[] = {d.in(0).sizes(), d.in(1).sizes()};
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return refuse(d, sizes.error().message);
    const auto spread = [&](const Value& x) { return x.sizes() == *sizes ? x : expand(x, *sizes); };
    const Value left = toOpmath(d.in(0)), right = toOpmath(d.in(1));
    const Value a = spread(left), b = spread(right);
    const Value from = d.call("aten.arange.default", {3}, {{"device", a.type().device}, {"pin_memory", false}});
    const auto turned = [&](const Value& x, int64_t by) {
        return d.call("aten.index_select.default", {x, dim, d.call("aten.remainder.Scalar", {from + by, 3})});
    };
    const auto product = [&](int64_t by, int64_t other) {
        const Value first = turned(a, by);
        return first * turned(b, other);
    };
    const Value plus = product(1, 2);
    return fromOpmath(d, plus - product(2, 1));
}
Result<ValueType> inferCross(const InferContext& c) {
    CT_TRY(const Operand a, c.operand(0));
    CT_TRY(const Operand b, c.operand(1));
    if (a.type.rank() != b.type.rank()) return c.fail("needs tensors of as many dims");
    CT_TRY(const int64_t dim, c.dim("dim", a.type.rank()));
    for (const Operand& one : {a, b})
        if (one.type.rank() == 0 || !(one.type.sizes[static_cast<size_t>(dim)] == SymInt(3)))
            return c.fail("dim " + std::to_string(dim) + " must have three elements");
    const SymDims shapes[] = {a.type.sizes, b.type.sizes};
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return c.fail(sizes.error().message);
    if (a.type.dtype == DType::Bool && b.type.dtype == DType::Bool) return c.fail("has no kernel for bool");
    if (a.type.dtype != b.type.dtype) return c.fail("operands of different dtypes");
    return ValueType(TensorType::contiguous(a.type.dtype, *sizes, a.type.device));
}
Values conjugateTranspose(Decomposition& d) {
    const Value x = d.in(0);
    if (x.rank() == 0) return isComplex(x.dtype()) ? unary("aten.conj.default", x) : x;
    if (x.rank() < 2) return refuse(d, "needs at least two dims, not " + x.type().text());
    const Value turned = d.call("aten.transpose.int", {x, -2, -1});
    return isComplex(x.dtype()) ? unary("aten.conj.default", turned) : turned;
}
Values renamedLinalg(Decomposition& d, std::string_view op) { return unary(op, d.in(0)); }

constexpr OpDef kLinalgCompositeOps[] = {
    shorthand(
        "aten.linalg_inv.default(Tensor A) -> Tensor", [](Decomposition& d) -> Values { return inverse(d, d.in(0)); },
        "f64[3, 3]\nf32[2, 2, 2]"),
    shorthand(
        "aten.inverse.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamedLinalg(d, "aten.linalg_inv.default"); }, "f64[3, 3]"),
    shorthand(
        "aten.linalg_solve.default(Tensor A, Tensor B, *, bool left=True) -> Tensor",
        [](Decomposition& d) -> Values {
            return firstOf(
                d.call("aten._linalg_solve_ex.default", {d.in(0), d.in(1)}, {{"left", d.flag("left", true)}}));
        },
        "f64[3, 3], f64[3, 2]\nf64[3, 3], f64[3]\nf64[2, 3, 3], f64[2, 2, 3], left = False"),
    shorthand(
        "aten.linalg_solve_ex.default(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten._linalg_solve_ex.default", {d.in(0), d.in(1)},
                                     {{"left", d.flag("left", true)}, {"check_errors", d.flag("check_errors")}});
            return {all[0], all[3]};
        },
        "f64[3, 3], f64[3, 2]"),
    shorthand(
        "aten.linalg_lu_factor.default(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten.linalg_lu_factor_ex.default", {d.in(0)}, {{"pivot", d.flag("pivot", true)}});
            return {all[0], all[1]};
        },
        "f64[3, 3]"),
    shorthand(
        "aten.linalg_cholesky.default(Tensor self, *, bool upper=False) -> Tensor",
        [](Decomposition& d) -> Values {
            return firstOf(d.call("aten.linalg_cholesky_ex.default", {d.in(0)}, {{"upper", d.flag("upper")}}));
        },
        "f64[2, 1, 1]>0"),
    shorthand(
        "aten.linalg_det.default(Tensor A) -> Tensor",
        [](Decomposition& d) -> Values { return firstOf(unary("aten._linalg_det.default", d.in(0))); },
        "f64[3, 3]\nf32[2, 2, 2]"),
    shorthand(
        "aten.det.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamedLinalg(d, "aten.linalg_det.default"); }, "f64[3, 3]"),
    shorthand(
        "aten.linalg_slogdet.default(Tensor A) -> (Tensor sign, Tensor logabsdet)",
        [](Decomposition& d) -> Values {
            const Value all = unary("aten._linalg_slogdet.default", d.in(0));
            return {all[0], all[1]};
        },
        "f64[3, 3]"),
    shorthand(
        "aten.slogdet.default(Tensor self) -> (Tensor sign, Tensor logabsdet)",
        [](Decomposition& d) -> Values {
            const Value all = unary("aten._linalg_slogdet.default", d.in(0));
            return {all[0], all[1]};
        },
        "f64[2, 3, 3]"),
    shorthand(
        "aten.logdet.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value all = unary("aten._linalg_slogdet.default", d.in(0)), sign = all[0], size = all[1];
            if (isComplex(d.in(0).dtype())) return refuse(d, "complex matrices have no expansion here; use slogdet");
            const Value turned = compareScalar("eq", sign, -1.0);
            return where(turned, scalarTensor(d, std::numeric_limits<double>::quiet_NaN(), size), size);
        },
        "f64[2, 3, 3]\nf32[2, 2]"),
    shorthand(
        "aten.linalg_eigh.default(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten._linalg_eigh.default", {d.in(0), d.arg("UPLO")});
            return {all[0], all[1]};
        },
        "f64[1, 1]"),
    shorthand(
        "aten.linalg_eigvalsh.default(Tensor self, str UPLO='L') -> Tensor",
        [](Decomposition& d) -> Values {
            return firstOf(d.call("aten._linalg_eigh.default", {d.in(0), d.arg("UPLO")}));
        },
        "f64[3, 3]\nf64[2, 4, 4], 'U'\nf32[2, 2]"),
    shorthand(
        "aten.linalg_eigvals.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return firstOf(unary("aten.linalg_eig.default", d.in(0))); },
        "f32[1, 1]\nf32[0, 0]"),
    shorthand(
        "aten.linalg_svd.default(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        [](Decomposition& d) -> Values {
            const Value all = d.call("aten._linalg_svd.default", {d.in(0), d.flag("full_matrices", true), true},
                                     {{"driver", d.arg("driver")}});
            return {all[0], all[1], all[2]};
        },
        "f64[0, 3]\nf64[1, 1]>0"),
    shorthand(
        "aten.linalg_svdvals.default(Tensor A, *, str? driver=None) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten._linalg_svd.default", {d.in(0), false, true}, {{"driver", d.arg("driver")}})[1];
        },
        "f64[4, 3]\nf64[2, 2, 3]\nf32[3, 2]"),
    shorthand(
        "aten.svd.default(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
        [](Decomposition& d) -> Values {
            if (!d.flag("compute_uv", true))
                return refuse(d, "compute_uv=False has no expansion here; use linalg_svdvals");
            const Value all = d.call("aten.linalg_svd.default", {d.in(0), !d.flag("some", true)});
            return {all[0], all[1], unary("aten.mH.default", all[2])};
        },
        "f64[1, 1]>0"),
    shorthand(
        "aten.matrix_exp.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamedLinalg(d, "aten.linalg_matrix_exp.default"); }, "f64[3, 3]"),
    shorthand("aten.linalg_matrix_power.default(Tensor self, int n) -> Tensor", powerOf,
              "f64[3, 3], 2\nf64[2, 3, 3], 3\nf64[2, 2], 5\nf64[2, 2], -1\nf64[2, 2], -3\nf64[2, 2], 0\nf64[2, 2], 1"),
    shorthand(
        "aten.matrix_power.default(Tensor self, int n) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.linalg_matrix_power.default", {d.in(0), d.arg(1)});
        },
        "f64[3, 3], 3"),
    shorthand(
        "aten.linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        rank, "f64[4, 3]\nf32[2, 2, 3]"),
    shorthand(
        "aten.linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        rank, "f64[4, 3]\nf64[3, 3], rtol = 0.5"),
    shorthand(
        "aten.linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        [](Decomposition& d) -> Values {
            const auto limits = tolerances(d);
            if (!limits) return Value(d.builder(), nullptr);
            return d.call("aten.linalg_pinv.atol_rtol_tensor", {d.in(0)},
                          {{"atol", limits->first}, {"rtol", limits->second}, {"hermitian", d.flag("hermitian")}});
        },
        "f64[4, 3]\nf64[3, 3], rtol = 0.25\nf64[3, 3], hermitian = True"),
    shorthand("aten.linalg_tensorsolve.default(Tensor self, Tensor other, int[]? dims=None) -> Tensor", solveTensor,
              "f64[2, 3, 6], f64[2, 3]\nf64[6, 2, 3], f64[2, 3], [0]"),
    shorthand("aten.linalg_tensorinv.default(Tensor self, int ind=2) -> Tensor", invertTensor,
              "f64[2, 3, 6]\nf64[6, 2, 3], 1"),
    shorthand("aten.linalg_vander.default(Tensor x, *, SymInt? N=None) -> Tensor", powersOf,
              "f64[3]\nf64[2, 3], N = 4"),
    {.schema = "aten.linalg_cross.default(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
     .infer = inferCross,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return crossProduct(d, d.dimOf("dim", d.in(0).rank())); },
     .derive =
         [](Derivation& d) {
             const auto cross = [&](const Value& a, const Value& b) {
                 return d.call("aten.linalg_cross.default", {a, b}, {{"dim", d.arg("dim")}});
             };
             if (d.needs(0)) d.input(0) = cross(conjugated(d.in(1)), d.dy());
             if (d.needs(1)) d.input(1) = cross(d.dy(), conjugated(d.in(0)));
         },
     .samples =
         "f32[2, 3], f32[2, 3]\nf64[3, 4], f64[3, 1], dim = 0\ni64[2, 3], i64[1, 3]\nbf16[3], bf16[3]\nc64[2, 3], c64[2, 3]"},
    shorthand(
        "aten.cross.default(Tensor self, Tensor other, int? dim=None) -> Tensor",
        [](Decomposition& d) -> Values {
            Argument dim = d.arg("dim");
            for (int64_t i = 0; dim.isNone() && i < d.in(0).rank(); ++i) {
                if (!d.in(0).size(i).isInt())
                    return refuse(d, "which dim is meant depends on whether " + d.in(0).size(i).text() +
                                         " is 3; name it: linalg_cross(self, other, dim=...)");
                if (d.in(0).size(i) == SymInt(3)) dim = Argument(i);
            }
            if (dim.isNone()) return refuse(d, "no dim of " + d.in(0).type().text() + " has three elements");
            return d.call("aten.linalg_cross.default", {d.in(0), d.in(1)}, {{"dim", dim}});
        },
        "f32[3, 3], f32[3, 3]\nf64[2, 3], f64[2, 3]\nf64[3, 4], f64[3, 4], 0"),
    shorthand(
        "aten.linalg_diagonal.default(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
        [](Decomposition& d) -> Values {
            return d.call("aten.diagonal.default", {d.in(0), d.arg("offset"), d.arg("dim1"), d.arg("dim2")});
        },
        "f32[3, 4]\nf32[2, 3, 4], offset = 1, dim1 = 0"),
    shorthand(
        "aten.orgqr.default(Tensor self, Tensor input2) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.linalg_householder_product.default", {d.in(0), d.in(1)});
        },
        "f64[3, 2]<1, f64[2]<1"),
    shorthand("aten.mH.default(Tensor(a) self) -> Tensor(a)", conjugateTranspose, "f32[2, 3]\nc64[2, 3, 2]"),
    shorthand("aten.adjoint.default(Tensor(a) self) -> Tensor(a)", conjugateTranspose, "f32[2, 3]\nc64[3, 2]"),
    shorthand(
        "aten.matrix_H.default(Tensor(a) self) -> Tensor(a)",
        [](Decomposition& d) {
            return d.in(0).rank() == 2 || d.in(0).rank() == 0
                       ? conjugateTranspose(d)
                       : refuse(d, "needs a matrix, not " + d.in(0).type().text());
        },
        "f32[2, 3]"),
};

}  // namespace

std::span<const OpDef> linalgCompositeOps() { return kLinalgCompositeOps; }

}  // namespace cutaway
