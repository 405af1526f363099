// segment_reduce: sums, means, products and extremes over runs of elements of a dim, which are given by lengths or by
// offsets. Each element gets the number of its segment, and is scattered to it.
#include <algorithm>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

/// A reduction: its name, scatter_reduce's name of it, and the result of a segment without elements.
struct Reduction {
    std::string_view name, scatter;
    double initial;
};
constexpr Reduction kReductions[] = {{"sum", "sum", 0},          {"mean", "sum", 0},          {"prod", "prod", 1},
                                     {"max", "amax", -kEndless}, {"amax", "amax", -kEndless}, {"min", "amin", kEndless},
                                     {"amin", "amin", kEndless}};
const Reduction* reductionOf(const CallView& c) {
    const auto* found = std::ranges::find(kReductions, c.text("reduce"), &Reduction::name);
    return found == std::end(kReductions) ? nullptr : found;
}

/// Where segments begin and end is given by offsets, or else by lengths.
Result<TensorType> boundsOf(const InferContext& c) {
    if (c.op().schema()->find("indices") >= 0 && c.has("indices"))
        return c.fail("does not reduce by indices, as PyTorch does not; give lengths or offsets");
    if (!c.has("offsets") && !c.has("lengths")) return c.fail("needs lengths or offsets");
    CT_TRY(TensorType bounds, c.tensor(c.has("offsets") ? "offsets" : "lengths"));
    if (bounds.dtype != DType::I64 && bounds.dtype != DType::I32)
        return c.fail("needs lengths or offsets of int64 or int32, not " + bounds.text());
    CT_TRY(const TensorType data, c.tensor("data"));
    CT_TRY(const int64_t axis, c.dim("axis", data.rank()));
    if (bounds.rank() != axis + 1 || data.rank() == 0)
        return c.fail("the axis " + std::to_string(axis) + " is not the last dim of " + bounds.text());
    for (int64_t i = 0; i < axis; ++i)
        if (differ(bounds.sizes[static_cast<size_t>(i)], data.sizes[static_cast<size_t>(i)]))
            return c.fail(bounds.text() + " does not fit " + data.text());
    return bounds;
}
Result<ValueType> inferSegments(const InferContext& c) {
    CT_TRY(const TensorType data, c.tensor("data"));
    CT_TRY(const TensorType bounds, boundsOf(c));
    CT_TRY(const int64_t axis, c.dim("axis", data.rank()));
    if (!isFloating(data.dtype) || byteSize(data.dtype) < 2)
        return c.fail("needs floating-point numbers, not " + data.text());
    if (reductionOf(c) == nullptr)
        return c.fail("reduces by sum, mean, prod, max or min, not by '" + c.text("reduce") + "'");
    if (c.has("offsets") && bounds.sizes.back() == SymInt(0)) return c.fail("needs at least one offset");
    SymDims sizes = data.sizes;
    sizes[static_cast<size_t>(axis)] = bounds.sizes.back() - SymInt(c.has("offsets") ? 1 : 0);
    return ValueType(TensorType::contiguous(data.dtype, sizes, data.device));
}
/// Lengths are not negative, and fill the dim unless the call says that they need not.
EvalResult evalSegments(const EvalContext& c) {
    if (c.has("offsets")) {
        const Tensor offsets = c.in("offsets");
        const std::vector<int64_t> all = packElements<int64_t>(offsets);
        for (size_t i = 1; i < all.size(); ++i)
            if (static_cast<int64_t>(i) % offsets.size(-1) != 0 && all[i] < all[i - 1])
                return c.fail("a segment ends at " + std::to_string(all[i]) + ", before it begins at " +
                              std::to_string(all[i - 1]));
    } else {
        const Tensor lengths = c.in("lengths"), data = c.in("data");
        const int64_t each = lengths.size(-1), size = data.size(c.dimOf("axis", data.rank()));
        const std::vector<int64_t> all = packElements<int64_t>(lengths);
        int64_t total = 0;
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i] < 0) return c.fail("a segment has length " + std::to_string(all[i]));
            total += all[i];
            if ((static_cast<int64_t>(i) + 1) % each != 0) continue;
            const bool loose = c.op().schema()->find("unsafe") < 0 || c.flag("unsafe");
            if (total > size || (total != size && !loose))
                return c.fail("the segments have " + std::to_string(total) + " of " + std::to_string(size) +
                              " elements");
            total = 0;
        }
    }
    return evalExpanded(c);
}

struct Segments {
    int64_t axis = 0;
    SymInt count;
    Value number;  // of each element's segment, counted from 1; 0 before the first one, more than count behind the last
    Value lengths;  // of each segment, in the data's number of dims
};
/// x, which has the dims up to the axis only, with a dim of size 1 for each of the data's others.
Value besideData(const Value& x, const Value& data) {
    SymDims sizes = x.sizes();
    sizes.resize(data.sizes().size(), SymInt(1));
    return reshape(x, sizes);
}
Segments segmentsOf(Decomposition& d, const Value& data, int64_t axis) {
    Segments s;
    s.axis = axis;
    Value bounds;
    if (d.has("offsets")) {
        bounds = convert(d.in("offsets"), DType::I64);
        s.count = bounds.size(-1) - SymInt(1);
    } else {
        const Value lengths = convert(d.in("lengths"), DType::I64);
        s.count = lengths.size(-1);
        bounds = d.call("aten.constant_pad_nd.default",
                        {d.call("aten.cumsum.default", {lengths, axis}), Argument(std::vector<int64_t>{1, 0}), 0});
    }
    bounds = d.call("aten.contiguous.default", {bounds});
    SymDims places(data.sizes().begin(), data.sizes().begin() + axis + 1);
    const Value each = expand(iota(d.builder(), places.back(), data.type().device), places);
    s.number =
        d.call("aten.searchsorted.Tensor", {bounds, d.call("aten.contiguous.default", {each})}, {{"right", true}});
    s.number = expand(besideData(s.number, data), data.sizes());
    const Value first = d.call("aten.slice.Tensor", {bounds, axis, int64_t{0}, int64_t{-1}}),
                last = d.call("aten.slice.Tensor", {bounds, axis, int64_t{1}});
    s.lengths = besideData(last - first, data);
    return s;
}
/// Results by number: those of the segments, between one of elements before the first and one of those behind the last.
Value scatteredSegments(Decomposition& d, const Segments& s, const Value& data, std::string_view how, double initial) {
    SymDims sizes = data.sizes();
    sizes[static_cast<size_t>(s.axis)] = s.count + SymInt(2);
    const Value start = full(d.builder(), sizes, initial, data.dtype(), data.type().device);
    return d.call("aten.scatter_reduce.two", {start, s.axis, s.number, data, std::string(how)});
}
Value ofSegments(Decomposition& d, const Segments& s, const Value& all) {
    return d.call("aten.slice.Tensor", {all, s.axis, int64_t{1}, Argument(s.count + SymInt(1))});
}
/// For each element, its segment's number in `each`; 0 for elements that are in no segment.
Value toElements(Decomposition& d, const Segments& s, const Value& each) {
    std::vector<int64_t> room(static_cast<size_t>(2 * (each.rank() - s.axis)), 0);
    room[room.size() - 1] = room[room.size() - 2] = 1;
    const Value padded = d.call("aten.constant_pad_nd.default", {each, Argument(room), 0});
    return d.call("aten.gather.default", {padded, s.axis, s.number});
}

Values reduceSegments(Decomposition& d) {
    const Value given = d.in("data"), data = toOpmath(given);
    if (!data) return Value();  // too large; the builder says so
    const Reduction& by = *reductionOf(d);
    const Segments s = segmentsOf(d, data, d.dimOf("axis", data.rank()));
    const double initial = d.has("initial") ? d.real("initial") : by.initial;
    Value out = ofSegments(d, s, scatteredSegments(d, s, data, by.scatter, initial));
    if (by.name == "mean") {
        const Value lengths = convert(s.lengths, out.dtype());
        const Value mean = out / lengths;
        // The mean of an empty segment is `initial`, or NaN where that is not given.
        out = d.has("initial") ? where(compareScalar("eq", s.lengths, int64_t{0}), out, mean) : mean;
    }
    const Value rounded = convert(out, given.dtype());
    return rounded.type().isContiguous()
               ? rounded
               : d.call("aten.clone.default", {rounded}, {{"memory_format", MemoryFormat::Contiguous}});
}
/// The product of a segment's other elements. Where one of them is 0 the quotient says nothing: then only that one has
/// a gradient, and of two zeros none.
Value productOfSegmentOthers(Decomposition& d, const Segments& s, const Value& data, const Value& out) {
    const Value zero = compareScalar("eq", data, int64_t{0});
    const Value rest = where(zero, scalarTensor(d, 1.0, data), data);
    const double initial = d.has("initial") ? d.real("initial") : 1;
    const Value product = toElements(d, s, ofSegments(d, s, scatteredSegments(d, s, rest, "prod", initial)));
    const Value zeros =
        toElements(d, s, ofSegments(d, s, scatteredSegments(d, s, convert(zero, data.dtype()), "sum", 0)));
    const Value none = scalarTensor(d, 0.0, data);
    return where(zero, where(compareScalar("eq", zeros, int64_t{1}), product, none), toElements(d, s, out) / data);
}
Values segmentGradients(Decomposition& d) {
    const Value given = d.in("data"), data = toOpmath(given);
    const Value g = toOpmath(d.in("grad")), out = toOpmath(d.in("output"));
    if (!data || !g || !out) return Value();
    const std::string_view by = reductionOf(d)->scatter;
    const Segments s = segmentsOf(d, data, d.dimOf("axis", data.rank()));
    const Value value = toElements(d, s, g);
    Value gradient = value;
    if (d.text("reduce") == "mean") {
        gradient = toElements(d, s, g / convert(s.lengths, g.dtype()));
    } else if (by == "prod") {
        gradient = value * productOfSegmentOthers(d, s, data, out);
    } else if (by != "sum") {
        const Value theirs = toElements(d, s, out);
        const Value chosen = d.call("aten.logical_or.default",
                                    {d.call("aten.eq.Tensor", {data, theirs}), unary("aten.isnan.default", data)});
        const Value ties = ofSegments(d, s, scatteredSegments(d, s, convert(chosen, data.dtype()), "sum", 0));
        gradient = where(chosen, toElements(d, s, g / ties), scalarTensor(d, 0.0, g));
    }
    // Elements before the first segment and behind the last have none.
    const Value inside = d.call("aten.logical_and.default", {compareScalar("gt", s.number, int64_t{0}),
                                                             d.call("aten.le.Scalar", {s.number, Argument(s.count)})});
    return convert(where(inside, gradient, scalarTensor(d, 0.0, gradient)), given.dtype());
}
Result<ValueType> inferSegmentGradients(const InferContext& c) {
    CT_TRY(const ValueType reduced, inferSegments(c));
    for (const char* param : {"grad", "output"}) {
        CT_TRY(const TensorType each, c.tensor(param));
        if (each.rank() != reduced.tensor()->rank() || differ(each.sizes, reduced.tensor()->sizes) ||
            each.dtype != reduced.tensor()->dtype)
            return c.fail("'" + std::string(param) + "' is " + each.text() + ", and the segments give " +
                          reduced.tensor()->text());
    }
    CT_TRY(const TensorType data, c.tensor("data"));
    return ValueType(TensorType::contiguous(data.dtype, data.sizes, data.device));
}

constexpr OpDef kSegmentsOps[] = {
    {.schema =
         "aten.segment_reduce.default(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
         "Scalar? initial=None) -> Tensor",
     .infer = inferSegments,
     .eval = evalSegments,
     .expand = Expand::Decompose,
     .decompose = reduceSegments,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten._segment_reduce_backward.default", {d.dy(), d.out(), d.arg(0), d.arg("reduce")},
                                 {{"lengths", d.arg("lengths")},
                                  {"offsets", d.arg("offsets")},
                                  {"axis", d.arg("axis")},
                                  {"initial", d.arg("initial")}});
         },
     .samples = R"(
f32[7, 2], 'sum', lengths = i64[3]<3, unsafe = True
f32[7, 2], 'mean', lengths = i64[3]<3, unsafe = True, initial = 1.5
f64[9], 'max', lengths = i32[4]<3, unsafe = True
f32[5, 3], 'min', offsets = i64[2]<5
f32[6], 'prod', offsets = i64[2]<5, initial = 2
f32[2, 5], 'sum', lengths = i64[2, 2]<3, axis = 1, unsafe = True
bf16[7, 2], 'mean', offsets = i64[2]<5
)"},
    {.schema =
         "aten._segment_reduce_backward.default(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, "
         "Scalar? initial=None) -> Tensor",
     .infer = inferSegmentGradients,
     .eval = evalSegments,
     .expand = Expand::Decompose,
     .decompose = segmentGradients,
     .samples =
         "f32[3, 2], f32[3, 2], f32[7, 2], 'sum', lengths = i64[3]<3\nf64[2], f64[2], f64[6], 'mean', lengths = i64[2]<3\nf32[2], f32[2], f32[6], 'prod', lengths = i64[2]<3"},
};

}  // namespace

std::span<const OpDef> segmentOps() { return kSegmentsOps; }

}  // namespace cutaway
