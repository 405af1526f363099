// Histograms: how many elements fall into each bin, of equal ones or between edges, in one dim or several.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/ops/eval.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<ValueType> inferHistogram(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const int64_t bins, c.integer("bins", 100));
    if (bins < 1) return c.fail("needs at least one bin, not " + std::to_string(bins));
    if (!isFloating(self.dtype)) return c.fail("has no kernel for " + std::string(info(self.dtype).torchName));
    const double low = toDouble(c.scalar("min").value_or(Scalar(int64_t{0}))),
                 high = toDouble(c.scalar("max").value_or(Scalar(int64_t{0})));
    if (!std::isfinite(low) || !std::isfinite(high)) return c.fail("needs finite bounds");
    if (low > high) return c.fail("max must not lie below min");
    return ValueType(TensorType::contiguous(self.dtype, {bins}, self.device));
}
/// Equal bounds stand for those of the elements; if these are equal too, the bins reach one to either side.
EvalResult evalHistogram(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const int64_t bins = out.numel();
    std::optional<Error> wrong;
    withFloat(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        auto low = static_cast<T>(toDouble(c.number("min"))), high = static_cast<T>(toDouble(c.number("max")));
        if (low == high && !in.empty()) {
            low = *std::min_element(in.begin(), in.end());
            high = *std::max_element(in.begin(), in.end());
            if (!std::all_of(in.begin(), in.end(), [](T x) { return std::isfinite(x); })) {
                wrong = invalidInput(c.op().name() + ": the elements are not finite; give min and max");
                return;
            }
        }
        if (low == high) {
            low -= 1;
            high += 1;
        }
        std::vector<T> counts(static_cast<size_t>(bins), T(0));
        for (const T x : in) {
            if (!(x >= low && x <= high)) continue;
            const auto bin = static_cast<int64_t>((x - low) * static_cast<T>(bins) / (high - low));
            counts[static_cast<size_t>(std::clamp<int64_t>(bin, 0, bins - 1))] += 1;
        }
        unpackElements(counts, out);
    });
    if (wrong) return *wrong;
    return out;
}

// -- bins with edges of their own, in one dim or several

/// histogramdd takes rows: the size of the last dim is the number of dims. histogram counts all elements in one dim.
bool hasOneDim(const CallView& c) { return c.op().name().starts_with("aten.histogram."); }
int64_t histogramDims(const CallView& c, const Dims& sizes) { return hasOneDim(c) ? 1 : sizes.back(); }

Result<TensorType> histogramInput(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    const bool givenEdges = c.op().schema()->find("range") < 0;
    if (self.dtype != DType::F32 && self.dtype != DType::F64 && !(givenEdges && isHalf(self.dtype)))
        return c.fail("has no kernel for " + self.text());
    if (!hasOneDim(c) && self.rank() < 2) return c.fail("needs at least two dims, not " + self.text());
    if (!hasOneDim(c) && self.sizes.back() == SymInt(0))
        return c.fail("needs a dim to count in, and has " + self.text());
    if (!c.has("weight")) return self;
    CT_TRY(const TensorType weight, c.tensor("weight"));
    SymDims wanted = self.sizes;
    if (!hasOneDim(c)) wanted.pop_back();
    const bool fits =
        hasOneDim(c) ? numel(weight.sizes) == numel(wanted) || !numel(weight.sizes).isInt() || !numel(wanted).isInt()
                     : weight.sizes.size() == wanted.size() && weight.sizes == wanted;
    if (!fits || weight.dtype != self.dtype)
        return c.fail("needs a weight of the same dtype for each element, not " + weight.text());
    return self;
}
/// The numbers of bins by dim.
Result<std::vector<int64_t>> binCounts(const InferContext& c, const TensorType& self) {
    std::vector<int64_t> counts;
    if (hasOneDim(c)) {
        CT_TRY(const int64_t count, c.integer("bins", 100));
        counts = {count};
    } else {
        CT_TRY(counts, c.integers("bins"));
        if (differ(static_cast<int64_t>(counts.size()), self.sizes.back()))
            return c.fail("needs as many numbers of bins as the last dim of " + self.text() + " has elements");
    }
    for (const int64_t count : counts)
        if (count < 1) return c.fail("needs at least one bin, not " + std::to_string(count));
    const auto* range = c.arg("range").list();
    if (range && range->size() != 2 * counts.size())
        return c.fail("needs two bounds for each dim, and has " + std::to_string(range->size()));
    return counts;
}
Result<std::vector<TensorType>> edgeTypes(const InferContext& c) {
    CT_TRY(const TensorType self, histogramInput(c));
    std::vector<TensorType> edges;
    if (c.op().schema()->find("range") >= 0) {
        CT_TRY(const std::vector<int64_t> counts, binCounts(c, self));
        for (const int64_t count : counts)
            edges.push_back(TensorType::contiguous(self.dtype, {checkedAdd(count, 1)}, self.device));
        return edges;
    }
    if (hasOneDim(c)) {
        CT_TRY(const TensorType one, c.tensor("bins"));
        edges = {one};
    } else {
        CT_TRY(edges, c.tensors("bins"));
        if (differ(static_cast<int64_t>(edges.size()), self.sizes.back()))
            return c.fail("needs edges for each element of the last dim of " + self.text());
    }
    for (const TensorType& edge : edges)
        if (edge.rank() != 1 || edge.dtype != self.dtype || exceeds(2, edge.sizes[0]))
            return c.fail("needs two edges or more in one dim, of the elements' dtype, not " + edge.text());
    return edges;
}
Result<ValueType> inferHistogramCounts(const InferContext& c) {
    CT_TRY(const std::vector<TensorType> edges, edgeTypes(c));
    SymDims bins;
    for (const TensorType& edge : edges) bins.push_back(edge.sizes[0] - SymInt(1));
    const TensorType counts = TensorType::contiguous(edges[0].dtype, bins, edges[0].device);
    return hasOneDim(c)
               ? ValueType(TupleType{counts, TensorType::contiguous(edges[0].dtype, edges[0].sizes, counts.device)})
               : ValueType(counts);
}

/// Edges that stand equally far apart, between the bounds that the call gives or those of the elements.
template <class T>
Result<std::vector<std::vector<T>>> evenEdges(const EvalContext& c, const std::vector<T>& rows,
                                              const std::vector<int64_t>& counts) {
    const auto* range = c.arg("range").list();
    std::vector<std::vector<T>> edges;
    for (size_t dim = 0; dim < counts.size(); ++dim) {
        T low = 0, high = rows.empty() ? 1 : 0;
        if (range) {
            low = static_cast<T>((*range)[2 * dim].asReal().value_or(0));
            high = static_cast<T>((*range)[2 * dim + 1].asReal().value_or(0));
        } else if (!rows.empty()) {
            low = std::numeric_limits<T>::infinity();
            high = -low;
            for (size_t i = dim; i < rows.size(); i += counts.size()) {
                if (!std::isfinite(rows[i])) return c.fail("the elements are not finite; give a range");
                low = std::min(low, rows[i]);
                high = std::max(high, rows[i]);
            }
        }
        if (!std::isfinite(low) || !std::isfinite(high)) return c.fail("needs finite bounds");
        if (low > high) return c.fail("a range's upper bound must not lie below the lower one");
        if (low == high) {
            low -= T(0.5);
            high += T(0.5);
        }
        const int64_t count = counts[dim], steps = checkedAdd(count, 1);
        const T step = (high - low) / static_cast<T>(count);
        std::vector<T> own;
        own.reserve(static_cast<size_t>(steps));  // more than there can be fails here, not after filling memory
        for (int64_t i = 0; i < steps; ++i)
            own.push_back(i < steps / 2 ? low + step * static_cast<T>(i) : high - step * static_cast<T>(count - i));
        edges.push_back(std::move(own));
    }
    return edges;
}
template <class T>
std::vector<T> sampleRows(const EvalContext& c) {
    return packElements<T>(c.in("self"));
}
template <class T>
Result<std::vector<std::vector<T>>> edgesOf(const EvalContext& c, const std::vector<T>& rows) {
    if (c.op().schema()->find("range") >= 0) {
        return evenEdges<T>(c, rows, hasOneDim(c) ? Dims{c.integerOr("bins", 100)} : c.integersOf("bins"));
    }
    std::vector<std::vector<T>> edges;
    if (hasOneDim(c)) edges.push_back(packElements<T>(c.in("bins")));
    else
        for (const Tensor& one : c.list("bins")) edges.push_back(packElements<T>(one));
    return edges;
}
/// The bin that x lies in. Even bins: by a quotient, which `histogram` corrects by comparing with the edges nearby.
/// Others: by a search in the edges. The last bin includes its upper edge.
template <class T>
int64_t binOf(const EvalContext& c, T x, const std::vector<T>& edges) {
    const auto count = static_cast<int64_t>(edges.size());
    int64_t from = 0, to = count;
    if (c.op().schema()->find("range") >= 0) {
        const T low = edges.front(), high = edges.back();
        const auto at = static_cast<int64_t>((x - low) * static_cast<T>(count - 1) / (high - low));
        if (!hasOneDim(c)) return std::min(at, count - 2);
        from = std::max<int64_t>(0, at - 1);
        to = std::min<int64_t>(at + 2, count);
    }
    const auto place = std::upper_bound(edges.begin() + from, edges.begin() + to, x);
    return std::min<int64_t>(place - edges.begin() - 1, count - 2);
}
EvalResult evalCounts(const EvalContext& c) {
    Tensor out = c.result(0);
    const int64_t dims = histogramDims(c, c.in("self").sizes());
    std::optional<Error> wrong;
    TensorList results = {out};
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> rows = sampleRows<T>(c);
        const auto edges = edgesOf<T>(c, rows);
        if (!edges) {
            wrong = edges.error();
            return;
        }
        const std::vector<T> weights = c.has("weight") ? packElements<T>(c.in("weight")) : std::vector<T>();
        std::vector<T> counts(static_cast<size_t>(out.numel()), T(0));
        for (size_t row = 0; (row + 1) * static_cast<size_t>(dims) <= rows.size() && !counts.empty(); ++row) {
            int64_t at = 0;
            for (int64_t dim = 0; dim < dims && at >= 0; ++dim) {
                const std::vector<T>& own = (*edges)[static_cast<size_t>(dim)];
                const T x = rows[row * static_cast<size_t>(dims) + static_cast<size_t>(dim)];
                const bool inside = x >= own.front() && x <= own.back();
                at = inside ? at * (static_cast<int64_t>(own.size()) - 1) + binOf(c, x, own) : -1;
            }
            if (at >= 0) counts[static_cast<size_t>(at)] += weights.empty() ? T(1) : weights[row];
        }
        if (c.flag("density")) {
            const T total = std::accumulate(counts.begin(), counts.end(), T(0));
            for (size_t i = 0; i < counts.size(); ++i) {
                counts[i] /= total;
                size_t rest = i;
                for (size_t dim = edges->size(); dim-- > 0;) {
                    const std::vector<T>& own = (*edges)[dim];
                    const size_t bin = rest % (own.size() - 1);
                    rest /= own.size() - 1;
                    counts[i] /= own[bin + 1] - own[bin];
                }
            }
        }
        unpackElements(counts, out);
        if (!hasOneDim(c)) return;
        results.push_back(c.result(1));
        unpackElements((*edges)[0], results[1]);
    });
    if (wrong) return *wrong;
    return results;
}
Result<ValueType> inferEdges(const InferContext& c) {
    CT_TRY(const std::vector<TensorType> edges, edgeTypes(c));
    return ValueType(TupleType(edges.begin(), edges.end()));
}
EvalResult evalEdges(const EvalContext& c) {
    TensorList results;
    std::optional<Error> wrong;
    withFloat(c.in("self").dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto edges = edgesOf<T>(c, sampleRows<T>(c));
        if (!edges) {
            wrong = edges.error();
            return;
        }
        for (size_t i = 0; i < edges->size(); ++i) {
            results.push_back(c.result(i));
            unpackElements((*edges)[i], results[i]);
        }
    });
    if (wrong) return *wrong;
    return results;
}
/// Counts and edges of several dims: the edges are a list among the results.
Values severalDims(Decomposition& d) {
    const Value x = d.in("self");
    const NamedArguments weighted = {{"weight", d.arg("weight")}, {"density", d.arg("density")}};
    if (d.op().name() == "aten.histogramdd.TensorList_bins") {
        const Value counts = d.call("aten._histogramdd_from_bin_tensors.default", {x, d.arg("bins")}, weighted);
        return {counts, d.call("aten._foreach_copy.default", {d.arg("bins"), d.arg("bins")})};
    }
    Argument bins = d.arg("bins");
    if (d.op().name() == "aten.histogramdd.int_bins") {
        const auto count = read(d, d.integer("bins"));
        if (!count) return Value(d.builder(), nullptr);
        if (x.rank() < 2 || !x.size(-1).isInt())
            return refuse(d, "needs a known number of dims, the last size of " + x.type().text());
        bins = Argument(std::vector<int64_t>(static_cast<size_t>(x.size(-1).value()), *count));
    }
    NamedArguments ranged = weighted;
    ranged.emplace_back("range", d.arg("range"));
    const Value counts = d.call("aten._histogramdd_from_bin_cts.default", {x, bins}, ranged);
    return {counts, d.call("aten._histogramdd_bin_edges.default", {x, bins}, ranged)};
}

constexpr std::string_view kSeveral = R"(
f32[9, 2], [2, 3]
f64[3, 4, 2], [2, 3], range = [-1.0, 1.0, -2.0, 2.0], weight = f64[3, 4]>0, density = True
f32[5, 1], [4], density = True
)";
constexpr std::string_view kSeveralEdges =
    "f32[9, 2], [f32[3]!, f32[4]!]\nf64[5, 1], [f64[4]!], weight = f64[5]>0, density = True";

constexpr OpDef kHistogramOps[] = {
    {.schema =
         "aten.histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
     .tags = Tag::NoGradient,
     .infer = inferHistogramCounts,
     .eval = evalCounts,
     .samples =
         "f32[2, 7], 4\nf64[20], 5, range = [-1.0, 1.5]\nf32[9], 3, weight = f32[9]>0, density = True\nf32[0], 2\nf64[3, 3], 3, range = [0.0, 0.0]"},
    {.schema =
         "aten.histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
     .tags = Tag::NoGradient,
     .infer = inferHistogramCounts,
     .eval = evalCounts,
     .samples = "f32[2, 7], f32[4]!\nf64[20], f64[5]!, weight = f64[20]>0, density = True"},
    {.schema =
         "aten._histogramdd_bin_edges.default(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
     .tags = Tag::NoGradient,
     .infer = inferEdges,
     .eval = evalEdges,
     .samples = kSeveral},
    {.schema =
         "aten._histogramdd_from_bin_cts.default(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHistogramCounts,
     .eval = evalCounts,
     .samples = kSeveral},
    {.schema =
         "aten._histogramdd_from_bin_tensors.default(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHistogramCounts,
     .eval = evalCounts,
     .samples = kSeveralEdges},
    shorthand(
        "aten.histogramdd.default(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        severalDims, kSeveral),
    shorthand(
        "aten.histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        severalDims, "f32[9, 2], 3\nf64[5, 2], 2, [-1.0, 1.0, -2.0, 2.0]"),
    shorthand(
        "aten.histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        severalDims, "f32[9, 2], [f32[3]!, f32[4]!]"),
    {.schema = "aten.histc.default(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHistogram,
     .eval = evalHistogram,
     .samples = "f32[2, 7], 4\nf64[20], 5, -1, 1\nf32[9], 3, 0, 1"},
};

}  // namespace

std::span<const OpDef> histogramOps() { return kHistogramOps; }

}  // namespace cutaway
