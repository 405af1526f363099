// Norms of vectors and matrices, and the condition numbers made of them.
#include <cmath>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

/// The two dims of a matrix norm.
std::optional<std::pair<int64_t, int64_t>> matrixDims(Decomposition& d, const Value& x,
                                                      const std::vector<int64_t>& dims) {
    const auto wrap = [&](int64_t dim) { return dim < 0 ? dim + x.rank() : dim; };
    if (dims.size() != 2 || wrap(dims[0]) == wrap(dims[1])) {
        refuse(d, "a matrix norm is over two dims");
        return std::nullopt;
    }
    for (const int64_t dim : dims)
        if (wrap(dim) < 0 || wrap(dim) >= x.rank()) {
            refuse(d, "dim " + std::to_string(dim) + " is outside of " + x.type().text());
            return std::nullopt;
        }
    return std::pair(wrap(dims[0]), wrap(dims[1]));
}
Value vectorNorm(Decomposition& d, const Value& x, const Scalar& order, const Argument& dims, bool keep) {
    NamedArguments keywords;
    if (d.op().schema()->find("dtype") >= 0 && d.has("dtype")) keywords.emplace_back("dtype", d.arg("dtype"));
    return d.call("aten.linalg_vector_norm.default", {x, Argument(order), dims, keep}, std::move(keywords));
}
/// The singular values of the matrices that lie along two dims, with these dims last.
Value singularValues(Decomposition& d, Value x, int64_t first, int64_t second) {
    if (d.op().schema()->find("dtype") >= 0 && d.dtype("dtype")) x = convert(x, *d.dtype("dtype"));
    std::vector<int64_t> order;
    for (int64_t dim = 0; dim < x.rank(); ++dim)
        if (dim != first && dim != second) order.push_back(dim);
    order.insert(order.end(), {first, second});
    return unary("aten.linalg_svdvals.default", permute(x, order));
}
/// A reduction of the singular values put back among the dims, if they are kept.
Value restored(Decomposition& d, const Value& reduced, int64_t first, int64_t second, int64_t rank, bool keep) {
    if (!keep) return reduced;
    std::vector<int64_t> order(static_cast<size_t>(rank), -1);
    order[static_cast<size_t>(first)] = rank - 2;
    order[static_cast<size_t>(second)] = rank - 1;
    int64_t next = 0;
    for (int64_t& dim : order)
        if (dim < 0) dim = next++;
    return permute(d.call("aten.unsqueeze.default", {reduced, -1}), order);
}
Value matrixNorm(Decomposition& d, const Value& x, double order, const std::vector<int64_t>& given, bool keep) {
    const auto dims = matrixDims(d, x, given);
    if (!dims) return Value(d.builder(), nullptr);
    auto [first, second] = *dims;
    const double size = std::fabs(order);
    const char* pick = order > 0 ? "aten.amax.default" : "aten.amin.default";
    if (size == 2) {
        const Value values = singularValues(d, x, first, second);
        if (order > 0 && values && values.size(-1) == SymInt(0))  // of no values the largest is 0
            return restored(d, d.call("aten.sum.dim_IntList", {values, Argument(std::vector<int64_t>{-1}), keep}),
                            first, second, x.rank(), keep);
        return restored(d, d.call(pick, {values, Argument(std::vector<int64_t>{-1}), keep}), first, second, x.rank(),
                        keep);
    }
    if (size != 1 && !std::isinf(size)) {
        refuse(d, "the order of a matrix norm is 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'");
        return Value(d.builder(), nullptr);
    }
    if (std::isinf(size)) std::swap(first, second);
    const Value sums = vectorNorm(d, x, 1.0, Argument(std::vector<int64_t>{first}), keep);
    const int64_t along = !keep && second > first ? second - 1 : second;
    if (order > 0 && sums && sums.size(along) == SymInt(0))
        return sum(sums, {along}, keep);  // of no sums the largest is 0
    return d.call(pick, {sums, Argument(std::vector<int64_t>{along}), keep});
}
Value namedNorm(Decomposition& d, const Value& x, const std::string& name, const std::vector<int64_t>& given,
                bool keep) {
    const auto dims = matrixDims(d, x, given);
    if (!dims) return Value(d.builder(), nullptr);
    if (name == "fro")
        return vectorNorm(d, x, int64_t{2}, Argument(std::vector<int64_t>{dims->first, dims->second}), keep);
    if (name == "nuc") {
        const Value values = singularValues(d, x, dims->first, dims->second);
        return restored(d, d.call("aten.sum.dim_IntList", {values, Argument(std::vector<int64_t>{-1}), keep}),
                        dims->first, dims->second, x.rank(), keep);
    }
    refuse(d, "unknown norm '" + name + "'");
    return Value(d.builder(), nullptr);
}
bool keeps(const Decomposition& d) { return d.op().schema()->find("keepdim") >= 0 && d.flag("keepdim"); }
Values anyNorm(Decomposition& d) {
    const Value x = d.in(0);
    const std::vector<int64_t> dims = d.has("dim") ? d.integersOf("dim") : std::vector<int64_t>();
    const bool matrix = dims.size() == 2 || (!d.has("dim") && x.rank() == 2);
    if (d.scalar("ord") && matrix)
        return matrixNorm(d, x, toDouble(*d.scalar("ord")), dims.empty() ? std::vector<int64_t>{0, 1} : dims, keeps(d));
    if (d.scalar("ord") && !d.has("dim") && x.rank() != 1)
        return refuse(d, "an order without dims needs a vector or a matrix");
    return vectorNorm(d, x, d.scalar("ord").value_or(Scalar(2.0)), d.arg("dim"), keeps(d));
}
Values anyNamedNorm(Decomposition& d) {
    const std::vector<int64_t> dims = d.has("dim") ? d.integersOf("dim") : std::vector<int64_t>{0, 1};
    if (!d.has("dim") && d.in(0).rank() != 2) return refuse(d, "a named norm without dims needs a matrix");
    return namedNorm(d, d.in(0), d.text("ord"), dims, keeps(d));
}
std::vector<int64_t> dimsOr(Decomposition& d, std::vector<int64_t> fallback) {
    return d.op().schema()->find("dim") >= 0 && d.has("dim") ? d.integersOf("dim") : fallback;
}

Value condition(Decomposition& d, const std::function<Value(const Value&)>& norm) {
    const Value pair = d.call("aten.linalg_inv_ex.default", {d.in(0)});
    Value inverse = pair[0];
    const Value singular = compareScalar("gt", unsqueeze(unsqueeze(pair[1], -1), -1), int64_t{0});
    const double infinity = std::numeric_limits<double>::infinity();
    inverse = d.call("aten.masked_fill.Scalar", {inverse, singular, infinity});
    inverse = d.call("aten.clone.default", {inverse}, {{"memory_format", MemoryFormat::Contiguous}});
    const Value value = norm(d.in(0)), others = norm(inverse);
    return d.call("aten.nan_to_num.default", {value * others, infinity, infinity, -infinity});
}
Values conditionNumber(Decomposition& d) {
    const double order = d.scalar("p") ? toDouble(*d.scalar("p")) : 2;
    if (std::fabs(order) != 2)
        return condition(d, [&](const Value& x) { return matrixNorm(d, x, order, {-2, -1}, false); });
    const Value values = unary("aten.linalg_svdvals.default", d.in(0));
    if (!values) return values;
    const SymInt count = values.size(-1);
    if (count == SymInt(0)) return sum(values, {-1}, false);  // 0 for an empty matrix
    const Value most = d.call("aten.slice.Tensor", {values, -1, 0, 1}),
                least = d.call("aten.slice.Tensor", {values, -1, Argument(count - SymInt(1)), Argument(count)});
    return d.call("aten.squeeze.dim", {order > 0 ? most / least : least / most, -1});
}

/// The sum of the absolute values' powers: of norms what stands under the root.
Values sumOfPowers(Decomposition& d) {
    Value x = d.in(size_t{0});
    const auto asked = d.dtype("dtype");
    if (!asked && !isFloating(x.dtype()) && !isComplex(x.dtype()))
        return refuse(d, "needs numbers with a fraction, not " + x.type().text() + "; give a dtype");
    if (asked) x = convert(x, isComplex(x.dtype()) && !isComplex(*asked) ? x.dtype() : *asked);
    const Value size = unary("aten.abs.default", x);
    const DType dtype = asked && !isComplex(*asked) ? *asked : size.dtype();
    const Argument dims = d.has("dim") ? d.arg("dim") : Argument(std::vector<Argument>{});
    const Value sums = d.call("aten.sum.dim_IntList", {d.call("aten.pow.Tensor_Scalar", {toOpmath(size), d.arg("ord")}),
                                                       dims, d.flag("keepdim")});
    return convert(sums, dtype);
}

constexpr OpDef kLinalgNormOps[] = {
    shorthand(
        "aten.linalg__powsum.default(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        sumOfPowers,
        "f32[2, 3, 4]\nf64[3, 4], 3, [1], True\nbf16[4], 1\nf32[3, 4], 2.5, [0]\nbf16[4], 2, dtype = torch.float32"),
    shorthand(
        "aten.linalg_matrix_norm.default(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        [](Decomposition& d) -> Values {
            return matrixNorm(d, d.in(0), toDouble(*d.scalar("ord")), d.integersOf("dim"), keeps(d));
        },
        "f64[2, 3, 4], 1\nf64[2, 3, 4], inf, [0, 2], True\nf64[2, 3, 4], -1, [2, 0]\nf64[2, 3, 4], 2, [0, 1], True\nf64[3, 4], -2"),
    shorthand(
        "aten.linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        [](Decomposition& d) -> Values { return namedNorm(d, d.in(0), d.text("ord"), d.integersOf("dim"), keeps(d)); },
        "f64[2, 3, 4]\nf64[2, 3, 4], 'nuc', [0, 2], True\nf64[2, 3, 4], 'fro', [-3, 1]\nf64[3, 4], 'nuc'"),
    shorthand(
        "aten.linalg_norm.default(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        anyNorm,
        "f32[2, 3, 4]\nf64[3, 4], 1\nf64[3, 4], 3, [1]\nf64[2, 3, 4], -inf, [0, 1]\nf64[5], 3\nf32[2, 3], None, [0], True"),
    shorthand(
        "aten.linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        anyNamedNorm, "f64[3, 4], 'fro'\nf64[2, 3, 4], 'nuc', [0, 1]"),
    shorthand(
        "aten.nuclear_norm.default(Tensor self, bool keepdim=False) -> Tensor",
        [](Decomposition& d) -> Values {
            return namedNorm(d, d.in(0), "nuc", {-2, -1}, keeps(d));
        },
        "f64[3, 4]"),
    shorthand(
        "aten.nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
        [](Decomposition& d) -> Values {
            return namedNorm(d, d.in(0), "nuc", dimsOr(d, {-2, -1}), keeps(d));
        },
        "f64[2, 3, 4], [0, 1], True"),
    shorthand(
        "aten.frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        [](Decomposition& d) -> Values { return vectorNorm(d, d.in(0), 2.0, d.arg("dim"), keeps(d)); },
        "f64[2, 3, 4], [0, 1], True\nf32[3, 4], [1]"),
    shorthand("aten.linalg_cond.default(Tensor self, Scalar? p=None) -> Tensor", conditionNumber,
              "f64[3, 3]\nf64[2, 3, 3], 1\nf64[3, 4], -2"),
    shorthand(
        "aten.linalg_cond.p_str(Tensor self, str p) -> Tensor",
        [](Decomposition& d) -> Values {
            return condition(d, [&](const Value& x) { return namedNorm(d, x, d.text("p"), {-2, -1}, false); });
        },
        "f64[3, 3], 'fro'\nf64[2, 2, 2], 'nuc'"),
};

}  // namespace

std::span<const OpDef> linalgNormOps() { return kLinalgNormOps; }

}  // namespace cutaway
