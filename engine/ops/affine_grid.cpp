// affine_grid: the positions of a plane's or volume's elements, with -1 and 1 as its borders, moved by affine maps.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// The sizes of the plane or volume, without batch and channels, outermost first.
Result<SymDims> spatialSizes(const InferContext& c) {
    CT_TRY(const SymDims size, c.sizes("size"));
    if (size.size() != 4 && size.size() != 5)
        return c.fail("makes grids of planes and volumes: size needs 4 or 5 numbers, not " +
                      std::to_string(size.size()));
    for (const SymInt& one : size)
        if (exceeds(1, one)) return c.fail("sizes must be positive, not " + one.text());
    return SymDims(size.begin() + 2, size.end());
}
Result<ValueType> inferGrid(const InferContext& c) {
    CT_TRY(const TensorType theta, c.tensor("theta"));
    CT_TRY(const SymDims spatial, spatialSizes(c));
    CT_TRY(const SymDims size, c.sizes("size"));
    const auto dims = static_cast<int64_t>(spatial.size());
    if (!isFloating(theta.dtype)) return c.fail("needs floating-point maps, not " + theta.text());
    if (theta.rank() != 3 || !(theta.sizes[0] == size[0]) || !(theta.sizes[1] == SymInt(dims)) ||
        !(theta.sizes[2] == SymInt(dims + 1)))
        return c.fail("needs a map of " + std::to_string(dims) + " by " + std::to_string(dims + 1) + " for each of " +
                      size[0].text() + " samples, not " + theta.text());
    SymDims sizes = {size[0]};
    sizes.insert(sizes.end(), spatial.begin(), spatial.end());
    sizes.emplace_back(dims);
    return ValueType(TensorType::contiguous(theta.dtype, sizes, theta.device));
}

/// PyTorch's base grid [spatial..., dims + 1]: x first, and 1 last, so that a map is one product. Each coordinate is
/// padded to the whole vector and the vectors are added, which fuses to one loop.
Value uprightGrid(Decomposition& d, const Value& theta, const SymDims& spatial) {
    const auto dims = static_cast<int64_t>(spatial.size());
    const DType dtype = theta.dtype();
    const Device device = theta.type().device;
    const bool align = d.flag("align_corners");
    std::vector<Value> parts;
    for (int64_t axis = 0; axis < dims; ++axis) {  // axis 0 is x, the last dim
        const auto at = static_cast<size_t>(dims - 1 - axis);
        if (!spatial[at].isInt()) {
            refuse(d, "needs fixed sizes; set the sizes of the inputs");
            return Value(d.builder(), nullptr);
        }
        const int64_t steps = spatial[at].value();
        SymDims shape(spatial.size() + 1, SymInt(1));
        shape[at] = steps;
        Value line;
        if (steps <= 1) line = full(d.builder(), {}, Scalar(int64_t{0}), dtype, device);
        else {
            const double end = align ? 1 : static_cast<double>(steps - 1) / static_cast<double>(steps);
            const Argument from = align ? Argument(-1) : Argument(-end), to = align ? Argument(1) : Argument(end);
            line = d.call("aten.linspace.default", {from, to, steps},
                          {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
        }
        parts.push_back(view(line, shape));
    }
    parts.push_back(d.call("aten.ones.default", {Argument(std::vector<int64_t>(spatial.size() + 1, 1))},
                           {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}}));
    Value total;
    for (size_t i = 0; i < parts.size(); ++i) {
        const auto before = static_cast<int64_t>(i);
        parts[i] = d.call("aten.constant_pad_nd.default",
                          {parts[i], Argument(std::vector<int64_t>{before, dims - before}), 0.0});
    }
    for (const Value& part : parts) total = total ? total + part : part;
    return total;
}
Values decomposeGrid(Decomposition& d) {
    const Value theta = d.in("theta");
    const auto spatial = read(d, spatialSizes(d));
    if (!spatial) return Value(d.builder(), nullptr);
    const Value base = uprightGrid(d, theta, *spatial);
    if (!base) return base;
    const int64_t dims = base.rank();
    const Value points = d.call("aten.view.default", {base, Argument(std::vector<int64_t>{-1, dims, 1})});
    const Value maps = unsqueeze(d.call("aten.permute.default", {theta, Argument(std::vector<int64_t>{0, 2, 1})}), 1);
    return view(sum(points * maps, {-2}, false), d.out().sizes);
}
/// Every point of the base grid times the gradient that arrives there, summed over the points.
Values decomposeGridBackward(Decomposition& d) {
    const Value gradient = d.in("grad");
    const auto spatial = read(d, spatialSizes(d));
    if (!spatial) return Value(d.builder(), nullptr);
    const auto dims = static_cast<int64_t>(spatial->size());
    if (!isFloating(gradient.dtype()) || gradient.rank() != dims + 2)
        return refuse(d, "the gradient " + gradient.type().text() + " is not that of a grid of this size");
    const Value base = uprightGrid(d, gradient, *spatial);
    if (!base) return base;
    const SymDims given = d.sizesOf("size");
    if (differ(given[0], gradient.size(0)))
        return refuse(d, "the gradient " + gradient.type().text() + " is not that of a grid of this size");
    const SymInt batch = gradient.size(0), points = numel(*spatial);
    const Value spread =
        expand(unsqueeze(transposeLast(view(base, {points, SymInt(dims + 1)})), 0), {batch, SymInt(dims + 1), points});
    return transposeLast(d.call("aten.bmm.default", {spread, reshape(gradient, {batch, points, SymInt(dims)})}));
}

constexpr OpDef kAffineGridOps[] = {
    {.schema = "aten.affine_grid_generator.default(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
     .infer = inferGrid,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeGrid,
     .derive =
         [](Derivation& d) {
             d.input(0) =
                 d.call("aten.affine_grid_generator_backward.default", {d.dy(), d.arg("size"), d.arg("align_corners")});
         },
     .samples =
         "f32[2, 2, 3], [2, 3, 4, 5], False\nf64[1, 2, 3], [1, 1, 3, 2], True\nf32[2, 3, 4], [2, 1, 2, 3, 4], False\nf32[1, 2, 3], [1, 1, 1, 3], False"},
    shorthand("aten.affine_grid_generator_backward.default(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
              decomposeGridBackward, "f32[2, 4, 5, 2], [2, 3, 4, 5], False\nf64[1, 2, 3, 4, 3], [1, 1, 2, 3, 4], True"),
};

}  // namespace

std::span<const OpDef> affineGridOps() { return kAffineGridOps; }

}  // namespace cutaway
