// Statistics and integrals that are written with other ops: quantiles, powers of a vector, the trapezoidal rule, and
// combinations of elements.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

// -- quantiles

/// The quantiles at `ranks`, f64 positions among the sorted elements of the last dim of `x`.
Value interpolated(Decomposition& d, const Value& x, Value ranks) {
    const std::string way = d.text("interpolation");
    if (way == "lower") ranks = unary("aten.floor.default", ranks);
    if (way == "higher") ranks = unary("aten.ceil.default", ranks);
    if (way == "nearest") ranks = unary("aten.round.default", ranks);
    const Value below = convert(ranks, DType::I64);
    const auto taken = [&](const Value& sorted, const Value& places) {
        return d.call("aten.gather.default", {sorted, int64_t{-1}, places});
    };
    const auto sorted = [&] { return d.call("aten.sort.default", {x, int64_t{-1}, false})[0]; };
    if (way != "linear" && way != "midpoint") return taken(sorted(), below);
    const Value weight = way == "linear" ? convert(ranks - below, x.dtype())
                                         : d.call("aten.full_like.default", {ranks, 0.5}, {{"dtype", x.dtype()}});
    const Value above = convert(unary("aten.ceil.default", ranks), DType::I64);
    const Value elements = sorted(), low = taken(elements, below);
    return d.call("aten.lerp.Tensor", {low, taken(elements, above), weight});
}
/// The ranks of the quantiles `q` along the last dim of `x`: f64, since f32 does not tell large positions apart.
Value ranksOf(Decomposition& d, const Value& x, const Value& q, bool ofNumbers) {
    const Value missing = ofNumbers ? unary("aten.isnan.default", x) : Value();
    if (ofNumbers) {
        // NaNs are sorted behind all others, and are not counted.
        const Value counted = sum(unary("aten.logical_not.default", missing), {-1}, true);
        const Value last = d.call("aten.sub.Scalar", {counted, int64_t{1}});
        const Value ranks = convert(q, DType::F64) * last;
        return d.call("aten.masked_fill.Scalar", {ranks, compareScalar("lt", ranks, int64_t{0}), int64_t{0}});
    }
    const SymInt last = x.size(-1) + SymInt(-1);
    const Value ranks = d.call("aten.mul.Scalar", {convert(q, DType::F64), Argument(last)});
    // A NaN makes the quantile NaN: it is sorted behind all others.
    const Value any = d.call("aten.any.dim", {unary("aten.isnan.default", x), int64_t{-1}, true});
    SymDims sizes = x.sizes();
    sizes.back() = q.rank() == 0 ? SymInt(1) : q.size(0);
    const auto widened = [&](const Value& value) { return value.sizes() == sizes ? value : expand(value, sizes); };
    const Value wide = widened(ranks), mask = widened(any);
    return d.call("aten.masked_fill.Scalar", {wide, mask, Argument(last)});
}
Values quantile(Decomposition& d, Value q, bool ofNumbers) {
    Value x = d.in(0);
    if (x.dtype() != DType::F32 && x.dtype() != DType::F64) return refuse(d, "needs float32 or float64 numbers");
    if (q.dtype() != x.dtype()) return refuse(d, "q has another dtype than the tensor");
    if (q.rank() > 1) return refuse(d, "q is a number or a list of numbers");
    constexpr std::string_view kWays[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    if (std::find(std::begin(kWays), std::end(kWays), d.text("interpolation")) == std::end(kWays))
        return refuse(d, "interpolation must be linear, lower, higher, midpoint or nearest");
    if (numel(x.sizes()) == SymInt(0)) return refuse(d, "the tensor has no elements");
    const int64_t rank = x.rank();
    const bool whole = !d.has("dim") || rank == 0, kept = d.flag("keepdim");
    const auto dim = d.has("dim") ? read(d, d.dim("dim", rank)) : std::optional<int64_t>(0);
    if (!dim) return Value(d.builder(), nullptr);
    SymDims sizes = whole ? SymDims(static_cast<size_t>(kept ? rank : 0), SymInt(1)) : x.sizes();
    if (!whole && kept) sizes[static_cast<size_t>(*dim)] = SymInt(1);
    else if (!whole) sizes.erase(sizes.begin() + *dim);
    if (whole) x = reshape(x, {numel(x.sizes())});
    else if (*dim != rank - 1) x = d.call("aten.transpose.int", {unsqueeze(x, -1), *dim, int64_t{-1}});
    sizes.push_back(x.size(-1));
    x = d.call("aten.reshape.default", {x, Argument(sizes)});
    Value result = interpolated(d, x, ranksOf(d, x, q, ofNumbers));
    // The dim of several quantiles goes first.
    if (q.rank() == 1) result = d.call("aten.transpose.int", {unsqueeze(result, 0), int64_t{0}, int64_t{-1}});
    return d.call("aten.squeeze.dim", {result, int64_t{-1}});
}

Values quantileOfNumber(Decomposition& d, bool ofNumbers) {
    const double q = d.real("q");
    if (!(q >= 0 && q <= 1)) return refuse(d, "q must lie between 0 and 1");
    return quantile(d, scalarTensor(d, q, d.in(0)), ofNumbers);
}

// -- the trapezoidal rule

/// All points but the last, and all but the first.
std::pair<Value, Value> neighbours(Decomposition& d, const Value& x, int64_t dim) {
    const Value left = d.call("aten.slice.Tensor", {x, dim, int64_t{0}, int64_t{-1}});
    return {left, d.call("aten.slice.Tensor", {x, dim, int64_t{1}})};
}
/// Distances of neighbours in x, in as many dims as y.
Value distances(Decomposition& d, const Value& y, int64_t dim) {
    Value x = d.in("x");
    if (x.rank() == 1) {
        SymDims sizes(y.sizes().size(), SymInt(1));
        sizes[static_cast<size_t>(dim)] = x.size(0);
        x = view(x, sizes);
    } else if (x.rank() < y.rank()) {
        SymDims sizes(y.sizes().size() - x.sizes().size(), SymInt(1));
        sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
        x = view(x, sizes);
    }
    const auto [left, right] = neighbours(d, x, dim);
    return right - left;
}
/// Points that are as far apart: the dim stays as it was given, as PyTorch's traces write it.
Values evenTrapezoids(Decomposition& d, bool running, double step) {
    const Value y = d.in("y");
    const int64_t dim = d.integerOr("dim", -1);
    if (running) {
        const auto [left, right] = neighbours(d, y, dim);
        return d.call("aten.cumsum.default", {d.call("aten.mul.Scalar", {left + right, step / 2}), dim});
    }
    const auto select = [&](int64_t position) { return d.call("aten.select.int", {y, dim, position}); };
    const Value last = select(-1), first = select(0);
    const Value ends = d.call("aten.mul.Scalar", {first + last, 0.5});
    const Value all = d.call("aten.sum.dim_IntList", {y, Argument(std::vector<int64_t>{dim})});
    return d.call("aten.mul.Scalar", {all - ends, step});
}
Values trapezoids(Decomposition& d, bool running) {
    const Value y = d.in("y");
    const auto dim = read(d, d.dim("dim", y.rank()));
    if (!dim) return Value(d.builder(), nullptr);
    const bool spaced = d.op().schema()->find("x") >= 0;
    if (y.rank() == 0) return refuse(d, "needs at least one dim");
    if (y.dtype() == DType::Bool || (spaced && d.in("x").dtype() == DType::Bool)) return refuse(d, "takes no bool");
    if (!running && y.size(*dim) == SymInt(0)) {
        SymDims sizes = y.sizes();
        sizes.erase(sizes.begin() + *dim);
        return full(d.builder(), sizes, int64_t{0}, y.dtype(), y.type().device);
    }
    if (!spaced) return evenTrapezoids(d, running, toDouble(d.scalar("dx").value_or(Scalar(1.0))));
    const Value x = d.in("x");
    if (x.rank() == 0 || x.rank() > y.rank()) return refuse(d, "x has as many dims as y, or fewer");
    if (x.rank() == 1 && !(x.size(0) == y.size(*dim)))
        return refuse(d,
                      "x has one number for each point along the dim: " + x.type().text() + " for " + y.type().text());
    const Value apart = distances(d, y, *dim);
    const auto [left, right] = neighbours(d, y, *dim);
    const Value parts = (left + right) * apart;
    return d.call("aten.div.Scalar",
                  {running ? d.call("aten.cumsum.default", {parts, *dim}) : sum(parts, {*dim}, false), 2.0});
}

/// The powers of x from the highest on; N of them.
Values exponentsOf(Decomposition& d) {
    const Value x = d.in(0).dtype() == DType::Bool ? convert(d.in(0), DType::I64) : d.in(0);
    if (x.rank() != 1) return refuse(d, "needs one dim");
    if (isComplex(x.dtype())) return refuse(d, "takes real numbers");
    SymInt count = x.size(0);
    if (d.has("N")) {
        const auto given = read(d, d.size("N"));
        if (!given) return Value(d.builder(), nullptr);
        if (given->isInt() && given->value() < 0) return refuse(d, "N must not be negative");
        count = *given;
    }
    const bool rising = d.flag("increasing");
    const Value powers = rising ? iota(d.builder(), count, x.type().device)
                                : iota(d.builder(), count, x.type().device, count + SymInt(-1), SymInt(-1));
    return d.call("aten.pow.Tensor_Tensor", {unsqueeze(x, 1), powers});
}

/// Rows of r elements of x, in the order in which they stand there; with repetitions if asked for.
Values combinationsOf(Decomposition& d) {
    const Value x = d.in(0);
    const auto count = read(d, d.integer("r", 2));
    if (!count) return Value(d.builder(), nullptr);
    const int64_t r = *count;
    if (x.rank() != 1) return refuse(d, "needs one dim, not " + x.type().text());
    if (r < 0) return refuse(d, "needs rows of at least no elements, not of " + std::to_string(r));
    const Device device = x.type().device;
    if (r == 0) return full(d.builder(), {0}, Scalar(int64_t{0}), x.dtype(), device);
    if (r == 1) return unary("aten.clone.default", unsqueeze(x, 1));
    if (!x.size(0).isInt())
        return refuse(d, "how many combinations there are depends on a symbolic size; give the size as a number");
    const int64_t n = x.size(0).value();
    const bool repeats = d.flag("with_replacement");
    if (r == 2) {
        const Value pairs = d.call("aten.triu_indices.default", {n, n, int64_t{repeats ? 0 : 1}},
                                   {{"dtype", DType::I64}, {"layout", Layout::Strided}, {"device", device}});
        const std::vector<Argument> places = {permute(pairs, {1, 0})};
        return d.call("aten.index.Tensor", {x, Argument(places)});
    }
    if (r > 16 || std::pow(static_cast<double>(n), static_cast<double>(r)) > 1e8)
        return refuse(d, "rows of " + std::to_string(r) + " of " + std::to_string(n) + " elements are too many");
    double rows = 1;
    for (int64_t i = 1; i <= r; ++i)
        rows = rows * static_cast<double>(repeats ? n + i - 1 : n - i + 1) / static_cast<double>(i);
    // A mask over all n^r tuples of places: those that rise (with repetitions: that do not fall).
    Value rising;
    for (int64_t dim = 0; dim + 1 < r; ++dim) {
        const auto along = [&](int64_t which) {
            SymDims sizes(static_cast<size_t>(r), SymInt(1));
            sizes[static_cast<size_t>(which)] = n;
            return view(iota(d.builder(), n, device), sizes);
        };
        const Value here = d.call(repeats ? "aten.le.Tensor" : "aten.lt.Tensor", {along(dim), along(dim + 1)});
        rising = rising ? d.call("aten.logical_and.default", {rising, here}) : here;
    }
    const Value everywhere = expand(rising, SymDims(static_cast<size_t>(r), SymInt(n)));
    const std::vector<Argument> places = {d.call("aten.nonzero_static.default", {everywhere},
                                                 {{"size", static_cast<int64_t>(std::llround(std::max(rows, 0.0)))}})};
    return d.call("aten.index.Tensor", {x, Argument(places)});
}

constexpr std::string_view kTwo = "f32[3, 4], f32[4]\nf32[3, 4], f32[3, 1], dim = 0\nf64[5], f64[5]";
constexpr std::string_view kEven = "f32[3, 4]\nf64[5], dx = 0.5\nf32[3, 4], dx = 2, dim = 0\ni64[4]";

constexpr OpDef kStatisticsOps[] = {
    shorthand(
        "aten.quantile.default(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        [](Decomposition& d) { return quantile(d, d.in(1), false); }, R"(
f32[3, 4], f32[2]<1
f32[3, 4], f32[2]<1, 0, True
f64[3, 4], f64[]<1, 1
f32[3, 4], f32[3]<1, -1, interpolation = 'nearest'
)"),
    shorthand(
        "aten.quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        [](Decomposition& d) { return quantileOfNumber(d, false); }, R"(
f32[3, 4], 0.3
f32[3, 4], 0.75, 1
f64[3, 4, 2], 0.5, 0, True
f32[3, 4], 0.3, None, True
f32[7], 0.3, 0, interpolation = 'lower'
f32[7], 0.3, 0, interpolation = 'higher'
f32[7], 0.3, 0, interpolation = 'midpoint'
f32[], 0.5
)"),
    shorthand(
        "aten.nanquantile.default(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        [](Decomposition& d) { return quantile(d, d.in(1), true); }, "f32[3, 4], f32[2]%\nf64[3, 4], f64[]%, 1, True"),
    shorthand(
        "aten.nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        [](Decomposition& d) { return quantileOfNumber(d, true); },
        "f32[3, 4], 0.3\nf32[3, 4], 0.75, 1\nf32[7], 0.3, 0, interpolation = 'higher'"),
    shorthand(
        "aten.trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, false); }, kTwo),
    shorthand(
        "aten.trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, false); }, kEven),
    shorthand(
        "aten.trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, false); }, kTwo),
    shorthand(
        "aten.trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, false); }, "f32[3, 4]\nf64[5], dx = 0.5"),
    shorthand(
        "aten.cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, true); }, kTwo),
    shorthand(
        "aten.cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        [](Decomposition& d) { return trapezoids(d, true); },
        "f32[3, 4]\nf64[5], dx = 0.5\nf32[3, 4], dx = 2, dim = 0"),
    shorthand("aten.vander.default(Tensor x, int? N=None, bool increasing=False) -> Tensor", exponentsOf,
              "f32[4]\nf64[3], 5\nf32[3], 4, True\ni64[3]"),
    shorthand("aten.combinations.default(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinationsOf,
              "f32[4]\nf64[3], 2, True\ni64[5], 3\nf32[3], 3, True\nf32[4], 1\nf32[4], 0\nf32[2], 3\nf32[2], 16, True"),
    shorthand(
        "aten.diagflat.default(Tensor self, int offset=0) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.diag_embed.default", {reshape(d.in(0), {SymInt(-1)}), d.arg("offset")});
        },
        "f32[2, 3]\nf32[4], 1\ni64[3], -2\nf32[]"),
};

}  // namespace

std::span<const OpDef> statisticsOps() { return kStatisticsOps; }

}  // namespace cutaway
