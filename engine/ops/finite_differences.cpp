// Finite differences along dims, of points that are evenly spaced or have places of their own.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// The difference quotients along a dim, of `order` 1 or 2 at the edges, call by call as PyTorch has them.
Value differences(Decomposition& d, const Value& x, int64_t dim, double spacing, int64_t order) {
    const auto scaled = [&](const Value& v, double by) {
        return d.call("aten.mul.Scalar", {v, by == 2 ? Argument(int64_t{2}) : Argument(by)});
    };
    const auto over = [&](const Value& v, const Argument& by) { return d.call("aten.div.Scalar", {v, by}); };
    const auto at = [&](int64_t from, std::optional<int64_t> to) {
        return to ? d.call("aten.slice.Tensor", {x, dim, from, *to}) : d.call("aten.slice.Tensor", {x, dim, from});
    };
    const Value before = at(0, -2);
    const Value inner = over(at(2, {}) - before, spacing);
    Value first, last;
    if (order == 1) {
        const Value left = at(0, 1);
        first = over(at(1, 2) - left, spacing);
        const Value right = at(-2, -1);
        last = over(at(-1, {}) - right, spacing);
    } else {
        const Value c = scaled(at(2, 3), 0.5), b = scaled(at(1, 2), 2), a = scaled(at(0, 1), -1.5);
        first = over(a + b - c, spacing);
        const Value z = scaled(at(-1, {}), 1.5), y = scaled(at(-2, -1), 2), w = scaled(at(-3, -2), 0.5);
        last = over(w - y + z, spacing);
    }
    const Value middle = over(inner, int64_t{2});
    return cat(d.builder(), {first, middle, last}, dim);
}
std::vector<int64_t> differenceDims(Decomposition& d, int64_t rank) {
    std::vector<int64_t> dims;
    const Argument& given = d.arg("dim");
    if (const auto one = given.asInt()) dims = {*one};
    else if (const auto* several = given.list())
        for (const Argument& each : *several) dims.push_back(each.asInt().value_or(0));
    else
        for (int64_t i = 0; i < rank; ++i) dims.push_back(i);
    return dims;
}
/// Why no overload takes the call, as a sentence; empty if nothing is wrong.
std::string refusalOf(const Value& x, int64_t order) {
    if (order != 1 && order != 2) return "edge_order is 1 or 2, not " + std::to_string(order);
    if (!isFloating(x.dtype()) && !isComplex(x.dtype()) && (!isIntegral(x.dtype(), false) || x.dtype() == DType::U8))
        return "needs floating-point numbers or signed integers, not " + x.type().text();
    return {};
}
Values gradients(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto order = read(d, d.integer("edge_order"));
    if (!order) return Value(d.builder(), nullptr);
    if (const std::string why = refusalOf(x, *order); !why.empty()) return refuse(d, why);
    const std::vector<int64_t> dims = differenceDims(d, x.rank());
    std::vector<double> spacing(dims.size(), 1);
    if (d.op().schema()->find("spacing") >= 0 && !d.arg("spacing").isNone()) {
        const Argument& asked = d.arg("spacing");
        const auto* each = asked.list();
        if (each && each->size() != dims.size())
            return refuse(d, "there are " + std::to_string(each->size()) + " spacings for " +
                                 std::to_string(dims.size()) + " dims");
        for (size_t i = 0; i < dims.size(); ++i) {
            const auto number = each ? (*each)[i].asReal() : asked.asReal();
            if (!number || *number == 0) return refuse(d, "needs spacings that are numbers, and not 0");
            spacing[i] = *number;
        }
    }
    std::vector<Value> results;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t dim = dims[i] < 0 ? dims[i] + x.rank() : dims[i];
        if (dim < 0 || dim >= x.rank()) return refuse(d, "has no dim " + std::to_string(dims[i]));
        if (exceeds(*order + 1, x.size(dim)))
            return refuse(d,
                          "needs at least " + std::to_string(*order + 1) + " elements in dim " + std::to_string(dim));
        results.push_back(differences(d, x, dim, spacing[i], *order));
    }
    return results;
}

/// The same at points whose places along the dim `at` says: parabolas through three neighbours.
Value differencesAt(Decomposition& d, const Value& x, int64_t dim, const Value& at, int64_t order) {
    const Value gaps = d.call("aten.diff.default", {at, int64_t{1}, int64_t{0}});
    const auto part = [&](const Value& v, int64_t along, int64_t from, std::optional<int64_t> to) {
        return to ? d.call("aten.slice.Tensor", {v, along, from, *to}) : d.call("aten.slice.Tensor", {v, along, from});
    };
    const auto points = [&](int64_t from, std::optional<int64_t> to) { return part(x, dim, from, to); };
    SymDims shape(static_cast<size_t>(x.rank()), SymInt(1));
    shape[static_cast<size_t>(dim)] = SymInt(-1);
    const auto along = [&](const Value& v) { return reshape(v, shape); };
    const Value before = part(gaps, 0, 0, -1), after = part(gaps, 0, 1, {});
    const Value left = along(-after / (before * (before + after))), middle = along((after - before) / (before * after)),
                right = along(before / (after * (before + after)));
    const Value inner = left * points(0, -2) + middle * points(1, -1) + right * points(2, {});
    const auto gap = [&](int64_t which) { return d.call("aten.select.int", {gaps, int64_t{0}, which}); };
    if (order == 1)
        return cat(d.builder(),
                   {(points(1, 2) - points(0, 1)) / gap(0), inner, (points(-1, {}) - points(-2, -1)) / gap(-1)}, dim);
    const Value one = gap(0), two = gap(1), last = gap(-1), previous = gap(-2);
    const Value first = -(one * 2.0 + two) / (one * (one + two)) * points(0, 1) +
                        (one + two) / (one * two) * points(1, 2) - one / (two * (one + two)) * points(2, 3);
    const Value end = last / (previous * (last + previous)) * points(-3, -2) -
                      (last + previous) / (last * previous) * points(-2, -1) +
                      (last * 2.0 + previous) / (last * (last + previous)) * points(-1, {});
    return cat(d.builder(), {first, inner, end}, dim);
}
Values gradientsAt(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto order = read(d, d.integer("edge_order"));
    if (!order) return Value(d.builder(), nullptr);
    if (const std::string why = refusalOf(x, *order); !why.empty()) return refuse(d, why);
    const std::vector<int64_t> dims = differenceDims(d, x.rank());
    const std::vector<Value> places = d.list("spacing");
    if (places.size() != dims.size())
        return refuse(d, "there are " + std::to_string(places.size()) + " lists of places for " +
                             std::to_string(dims.size()) + " dims");
    std::vector<Value> results;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t dim = dims[i] < 0 ? dims[i] + x.rank() : dims[i];
        if (dim < 0 || dim >= x.rank()) return refuse(d, "has no dim " + std::to_string(dims[i]));
        if (places[i].rank() != 1 || differ(places[i].size(0), x.size(dim)))
            return refuse(d, "needs one place for each element of dim " + std::to_string(dim) + ", not " +
                                 places[i].type().text());
        if (exceeds(*order + 1, x.size(dim)))
            return refuse(d,
                          "needs at least " + std::to_string(*order + 1) + " elements in dim " + std::to_string(dim));
        results.push_back(differencesAt(d, x, dim, places[i], *order));
    }
    return results;
}

constexpr OpDef kFiniteDifferencesOps[] = {
    shorthand(
        "aten.gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
        gradients, "f32[5]\nf32[4, 5]\nf64[4, 5], spacing=0.5, dim=1\nf32[4, 5], dim=-1, edge_order=2"),
    shorthand("aten.gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
              gradients, "f32[4, 5], spacing=2.0, dim=[1, 0]"),
    shorthand("aten.gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", gradients,
              "f32[4, 5], dim=[0]\nf32[4, 5], dim=[0, 1], edge_order=2"),
    shorthand(
        "aten.gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        gradients, "f32[4, 5], spacing=[0.5, 2.0]"),
    shorthand("aten.gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
              gradients, "f32[4, 5], spacing=[0.5, 2.0], dim=[1, 0]"),

    shorthand(
        "aten.gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        gradientsAt,
        "f32[4, 5], spacing=[f32[5]>0], dim=1\nf64[5], spacing=[f64[5]>0]\nf64[5], spacing=[f64[5]>0], edge_order=2"),
    shorthand("aten.gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
              gradientsAt, "f64[4, 5], spacing=[f64[5]>0, f64[4]>0], dim=[1, 0]"),
};

}  // namespace

std::span<const OpDef> differenceOps() { return kFiniteDifferencesOps; }

}  // namespace cutaway
