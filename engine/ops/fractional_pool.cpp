// Pooling by windows whose places are drawn: where they start follows from one random number for each dim and plane,
// which the call is given. Written with a look-up of all windows and their maxima.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

struct FractionalCall {
    Value self, samples;
    std::vector<int64_t> kernel;
    SymDims out;
    int64_t first = 0;  // the first pooled dim
    size_t spatial() const { return kernel.size(); }
};
Result<FractionalCall> readFractionalCall(Decomposition& d, size_t spatial) {
    FractionalCall call{.self = d.in(size_t{0}), .samples = d.in("random_samples"), .kernel = {}, .out = {}};
    const TensorType& x = call.self.type();
    const auto dims = static_cast<int64_t>(spatial);
    if (x.rank() != dims + 1 && x.rank() != dims + 2)
        return d.fail("needs " + std::to_string(dims + 1) + " or " + std::to_string(dims + 2) + " dims, not " +
                      x.text());
    if (!isFloating(x.dtype)) return d.fail("needs floating-point numbers, not " + x.text());
    CT_TRY(call.kernel, d.integers("kernel_size"));
    CT_TRY(call.out, d.sizes("output_size"));
    if (call.kernel.size() == 1) call.kernel.assign(spatial, call.kernel[0]);
    if (call.kernel.size() != spatial || call.out.size() != spatial)
        return d.fail("kernel_size and output_size need one number for each pooled dim");
    call.first = x.rank() - dims;
    for (int64_t i = 1; i < x.rank(); ++i)
        if (x.sizes[static_cast<size_t>(i)] == SymInt(0)) return d.fail("a dim of " + x.text() + " has no elements");
    for (size_t i = 0; i < spatial; ++i) {
        const SymInt& in = x.sizes[static_cast<size_t>(call.first) + i];
        if (call.kernel[i] < 1 || exceeds(1, call.out[i]))
            return d.fail("kernel and output have at least one element in each dim");
        // In three dims PyTorch wants one element more than the windows need.
        const int64_t spare = spatial == 3 ? 1 : 0;
        if (exceeds(call.out[i] + SymInt(call.kernel[i] - 1 + spare), in))
            return d.fail("windows of " + std::to_string(call.kernel[i]) + " elements do not fit " +
                          call.out[i].text() + " times into " + in.text());
    }
    const TensorType& samples = call.samples.type();
    if (samples.dtype != x.dtype) return d.fail("needs random_samples of the input's dtype, not " + samples.text());
    const SymInt batch = call.first == 2 ? x.sizes[0] : SymInt(1),
                 planes = x.sizes[static_cast<size_t>(call.first) - 1];
    if (samples.rank() != 3 || differ(samples.sizes, {batch, planes, SymInt(dims)}))
        return d.fail("needs random_samples of one number for each plane and dim, not " + samples.text());
    return call;
}

/// Where the windows of each plane start along a dim: [batch, planes, out]. All but the last, which ends where the
/// input does, at a multiple of the step (in - kernel) / (out - 1) from a place that is drawn.
/// Places of half floats are computed in float32, as PyTorch's kernel for GPUs does.
Value startsAlong(Decomposition& d, const FractionalCall& call, size_t dim) {
    const DType dtype = opmathType(call.self.dtype());
    const Device device = call.self.type().device;
    const SymInt &in = call.self.size(call.first + static_cast<int64_t>(dim)), &out = call.out[dim];
    const SymInt last = in - SymInt(call.kernel[dim]);
    // PyTorch's order of the samples: rows behind columns in two dims, from the first dim on in three.
    const int64_t which = call.spatial() == 2 ? 1 - static_cast<int64_t>(dim) : static_cast<int64_t>(dim);
    const Value sample = convert(d.call("aten.slice.Tensor", {call.samples, int64_t{2}, which, which + 1}), dtype);
    const Value count = iota(d.builder(), out, device);
    const Value one = full(d.builder(), {}, Scalar(1.0), dtype, device);
    const Value step = d.call("aten.div.Scalar", {d.call("aten.mul.Scalar", {one, Argument(last)}),
                                                  Argument(max(out - SymInt(1), SymInt(1)))});
    const auto whole = [&](const Value& x) { return convert(x, DType::I64); };
    const Value starts = whole((convert(count, dtype) + sample) * step) - whole(sample * step);
    const Value isLast = d.call("aten.eq.Scalar", {count, Argument(out - SymInt(1))});
    const Value end =
        d.call("aten.full.default", {Argument(SymDims{}), Argument(last)},
               {{"dtype", DType::I64}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
    return where(isLast, end, starts);
}

template <size_t spatial>
Values decomposePool(Decomposition& d) {
    const auto call = read(d, readFractionalCall(d, spatial));
    if (!call) return {Value(), Value()};
    const Value& x = call->self;
    const SymInt batch = call->first == 2 ? x.size(0) : SymInt(1), planes = x.size(call->first - 1);
    // Positions in a plane, [batch, planes, out..., kernel...]: each dim adds its own, scaled by the sizes behind it.
    Value position;
    SymInt area = 1;
    for (size_t i = spatial; i-- > 0;) {
        SymDims starts(2 + 2 * spatial, SymInt(1)), offsets = starts;
        starts[0] = batch;
        starts[1] = planes;
        starts[2 + i] = call->out[i];
        offsets[2 + spatial + i] = SymInt(call->kernel[i]);
        Value along = view(startsAlong(d, *call, i), starts) +
                      view(iota(d.builder(), SymInt(call->kernel[i]), x.type().device), offsets);
        if (!(area == SymInt(1))) along = d.call("aten.mul.Scalar", {along, Argument(area)});
        position = position ? position + along : along;
        area = area * x.size(call->first + static_cast<int64_t>(i));
    }
    SymInt outputs = 1;
    int64_t window = 1;
    for (size_t i = 0; i < spatial; ++i) {
        outputs = outputs * call->out[i];
        window *= call->kernel[i];
    }
    const Value flat = reshape(position, {batch, planes, outputs * SymInt(window)});
    const Value elements = d.call("aten.gather.default", {reshape(x, {batch, planes, area}), int64_t{2}, flat});
    const SymDims windows = {batch, planes, outputs, SymInt(window)};
    const Value largest = d.call("aten.max.dim", {view(elements, windows), int64_t{-1}});
    const Value values = largest[0], which = largest[1];
    const Value places = d.call("aten.gather.default", {view(flat, windows), int64_t{-1}, unsqueeze(which, -1)});
    SymDims sizes(x.sizes().begin(), x.sizes().begin() + call->first);
    sizes.insert(sizes.end(), call->out.begin(), call->out.end());
    return {view(values, sizes), view(places, sizes)};
}

/// The gradient of each maximum, added where it came from.
template <size_t spatial>
Values decomposeBackward(Decomposition& d) {
    const Value g = d.in(0), x = d.in(1), indices = d.in("indices");
    const auto dims = static_cast<int64_t>(spatial);
    if (x.rank() != dims + 1 && x.rank() != dims + 2) return refuse(d, "does not pool " + x.type().text());
    if (g.rank() != x.rank() || differ(g.sizes(), indices.sizes()) || indices.dtype() != DType::I64)
        return refuse(d, "needs one position for each element of the gradient");
    if (g.dtype() != x.dtype()) return refuse(d, "gradient and input differ in dtype");
    const auto flat = [&](const Value& v) {
        SymDims sizes(v.sizes().begin(), v.sizes().end() - dims);
        SymInt rest = 1;
        for (int64_t i = v.rank() - dims; i < v.rank(); ++i) rest = rest * v.size(i);
        sizes.push_back(rest);
        return reshape(v, sizes);
    };
    SymDims plane(x.sizes().begin(), x.sizes().end() - dims);
    SymInt area = 1;
    for (int64_t i = x.rank() - dims; i < x.rank(); ++i) area = area * x.size(i);
    plane.push_back(area);
    const Value zeros = full(d.builder(), plane, Scalar(0.0), x.dtype(), x.type().device);
    return view(d.call("aten.scatter_add.default", {zeros, int64_t{-1}, flat(indices), flat(g)}), x.sizes());
}

constexpr OpDef poolRow(std::string_view schema, Fn<Values(Decomposition&)> decompose, Fn<void(Derivation&)> derive,
                        std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::Reduction,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Decompose,
            .decompose = decompose,
            .derive = derive,
            .samples = samples};
}
constexpr OpDef backwardRow(std::string_view schema, Fn<Values(Decomposition&)> decompose, std::string_view samples) {
    return {.schema = schema,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Decompose,
            .decompose = decompose,
            .samples = samples};
}
void derivePool(Derivation& d, std::string_view backward) {
    if (d.needs(0))
        d.input(0) = d.call(backward, {d.dy(0), d.in(0), d.arg("kernel_size"), d.arg("output_size"), d.out(1)});
}

constexpr OpDef kFractionalPoolOps[] = {
    poolRow(
        "aten.fractional_max_pool2d.default(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        decomposePool<2>, [](Derivation& d) { derivePool(d, "aten.fractional_max_pool2d_backward.default"); },
        "f32[2, 3, 7, 8], [2, 3], [4, 3], f32[2, 3, 2]%\nf64[3, 6, 6], [2, 2], [3, 4], f64[1, 3, 2]%\nf32[1, 2, 5, 5], [3, 3], [1, 1], f32[1, 2, 2]%"),
    poolRow(
        "aten.fractional_max_pool3d.default(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        decomposePool<3>, [](Derivation& d) { derivePool(d, "aten.fractional_max_pool3d_backward.default"); },
        "f32[2, 2, 5, 6, 7], [2, 2, 3], [3, 2, 2], f32[2, 2, 3]%\nf64[2, 5, 5, 5], [2, 2, 2], [2, 2, 3], f64[1, 2, 3]%"),
    backwardRow(
        "aten.fractional_max_pool2d_backward.default(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
        decomposeBackward<2>, "f32[2, 3, 2, 2], f32[2, 3, 5, 4], [2, 2], [2, 2], i64[2, 3, 2, 2]<20"),
    backwardRow(
        "aten.fractional_max_pool3d_backward.default(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
        decomposeBackward<3>, "f32[1, 2, 2, 2, 2], f32[1, 2, 3, 4, 3], [2, 2, 2], [2, 2, 2], i64[1, 2, 2, 2, 2]<36"),
};

}  // namespace

std::span<const OpDef> fractionalPoolOps() { return kFractionalPoolOps; }

}  // namespace cutaway
