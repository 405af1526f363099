// Antialiased resampling of planes (support/antialias.h). The filters are separable: one matrix of weights per dim.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/resample.h"
#include "engine/support/antialias.h"

namespace cutaway {
namespace {

using namespace antialias;

double antialiasedScale(const EvalContext& c, const char* param) {
    const auto scale = c.scalar(param);
    return scale ? toDouble(*scale) : 0;
}
/// The spans of both dims of a plane.
struct Spans {
    std::vector<Span> rows, columns;
    Spans(const EvalContext& c, const Filter& filter, const Dims& from, const Dims& to)
        : rows(spansAlong(filter, from[2], to[2], antialiasedScale(c, "scales_h"), c.flag("align_corners"))),
          columns(spansAlong(filter, from[3], to[3], antialiasedScale(c, "scales_w"), c.flag("align_corners"))) {}
};
/// body(position in the resampled tensor, position in the other, weight) for every pair that belongs together;
/// row-major.
template <class Body>
void forEachPair(const Spans& spans, const Dims& from, Body&& body) {
    int64_t at = 0;
    for (int64_t plane = 0; plane < from[0] * from[1]; ++plane)
        for (const Span& row : spans.rows)
            for (const Span& column : spans.columns) {
                for (size_t i = 0; i < row.weights.size(); ++i)
                    for (size_t k = 0; k < column.weights.size(); ++k) {
                        const int64_t y = row.first + static_cast<int64_t>(i),
                                      x = column.first + static_cast<int64_t>(k);
                        body(static_cast<size_t>(at), static_cast<size_t>((plane * from[2] + y) * from[3] + x),
                             row.weights[i] * column.weights[k]);
                    }
                ++at;
            }
}

Result<std::vector<SymInt>> planeSize(const InferContext& c) {
    CT_TRY(const SymDims size, c.sizes("output_size"));
    if (size.size() != 2) return c.fail("output_size needs two numbers");
    for (const SymInt& one : size)
        if (exceeds(1, one)) return c.fail("resamples to " + one.text() + " elements");
    return std::vector<SymInt>(size.begin(), size.end());
}
Result<void> checkPlanes(const InferContext& c, const TensorType& x, bool bytes = false) {
    if (x.rank() != 4) return c.fail("needs a tensor of 4 dims, not " + x.text());
    if (x.dtype != DType::F32 && x.dtype != DType::F64 && !(bytes && x.dtype == DType::U8))
        return unsupported(c.op().name() + ": has no kernel for " + std::string(info(x.dtype).torchName), {},
                           {"convert the planes to float32"});
    for (size_t dim = 1; dim < 4; ++dim)
        if (x.sizes[dim] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) + " of " + x.text() + " has no elements");
    return {};
}
Result<ValueType> inferForward(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY_VOID(checkPlanes(c, x, true));
    CT_TRY(const auto size, planeSize(c));
    TensorType type = TensorType::contiguous(x.dtype, {x.sizes[0], x.sizes[1], size[0], size[1]}, x.device);
    if (isChannelsLast(x)) type.strides = *formatStrides(MemoryFormat::ChannelsLast, type.sizes);
    return ValueType(std::move(type));
}
template <const Filter& filter>
EvalResult evalForward(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor x = c.in(size_t{0});
    const std::vector<double> planes = packElements<double>(x);
    std::vector<double> sums(static_cast<size_t>(out.numel()), 0.0);
    const Spans spans(c, filter, x.sizes(), out.sizes());
    if (x.dtype() == DType::U8) {
        const ByteResampling bytes(spans.rows, spans.columns, x.size(2), x.size(3));
        for (int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane)
            bytes.resample(planes.data() + plane * x.size(2) * x.size(3),
                           sums.data() + plane * out.size(2) * out.size(3));
    } else {
        forEachPair(spans, x.sizes(),
                    [&](size_t to, size_t from, double weight) { sums[to] += planes[from] * weight; });
    }
    unpackElements(sums, out);
    return out;
}
Result<ValueType> inferAntialiasedBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY_VOID(checkPlanes(c, gradient));
    CT_TRY(const auto size, planeSize(c));
    CT_TRY(const SymDims sizes, c.sizes("input_size"));
    if (sizes.size() != 4) return c.fail("input_size needs four numbers");
    const SymDims wanted = {sizes[0], sizes[1], size[0], size[1]};
    for (size_t dim = 0; dim < 4; ++dim) {
        const SymInt &one = wanted[dim], &given = gradient.sizes[dim];
        if (differ(one, given))
            return c.fail("the gradient " + gradient.text() + " does not have the size " + one.text() + " in dim " +
                          std::to_string(dim));
        if (dim > 0 && sizes[dim] == SymInt(0)) return c.fail("dim " + std::to_string(dim) + " has no elements");
    }
    TensorType type = TensorType::contiguous(gradient.dtype, sizes, gradient.device);
    // The cubic kernel alone does not look at the layout.
    if (!c.op().name().starts_with("aten._upsample_bicubic") && isChannelsLast(gradient))
        type.strides = *formatStrides(MemoryFormat::ChannelsLast, sizes);
    return ValueType(std::move(type));
}
template <const Filter& filter>
EvalResult evalAntialiasedBackward(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor gradient = c.in(size_t{0});
    const std::vector<double> g = packElements<double>(gradient);
    std::vector<double> sums(static_cast<size_t>(out.numel()), 0.0);
    forEachPair(Spans(c, filter, out.sizes(), gradient.sizes()), out.sizes(),
                [&](size_t to, size_t from, double weight) { sums[from] += g[to] * weight; });
    unpackElements(sums, out);
    return out;
}
void shareOut(Derivation& d, std::string_view op) {
    const Argument sizes(d.in(0).sizes());
    d.input(0) =
        d.call(op, {d.dy(), d.arg("output_size"), sizes, d.arg("align_corners"), d.arg("scales_h"), d.arg("scales_w")});
}
/// The size, or that which the scales give, and the scales one by one.
Values withSize(Decomposition& d, std::string_view op) {
    const Value x = d.in(0);
    const auto* scales = d.arg("scale_factors").list();
    if (x.rank() != 4) return refuse(d, "needs a tensor of 4 dims, not " + x.type().text());
    if (d.has("output_size") == d.has("scale_factors"))
        return refuse(d, "needs output_size or scale_factors, not both");
    if (d.has("output_size"))
        return d.call(op, {x, d.arg("output_size"), d.flag("align_corners"), Argument(), Argument()});
    if (scales == nullptr || scales->size() != 2) return refuse(d, "needs two scale_factors");
    SymDims size;
    for (size_t i = 0; i < 2; ++i) {
        const auto scale = (*scales)[i].asReal();
        if (!scale) return refuse(d, "needs scale_factors that are numbers");
        size.push_back(scaledSize(x.size(static_cast<int64_t>(i) + 2), *scale));
    }
    return d.call(op, {x, Argument(size), d.flag("align_corners"), (*scales)[0], (*scales)[1]});
}

constexpr std::string_view kForward =
    "f32[1, 2, 6, 8], [3, 5], False\nf64[2, 1, 3, 4], [6, 7], True\nf32[1, 3, 8, 8][192, 1, 24, 3], [4, 4], False\nf64[1, 1, 6, 6], [3, 3], False, 0.5, 0.5\nu8[2, 3, 9, 8], [4, 5], False\nu8[1, 3, 5, 4][60, 1, 12, 3], [7, 9], False\nu8[1, 1, 6, 6], [6, 3], True";
constexpr std::string_view kBackward =
    "f32[1, 2, 3, 5], [3, 5], [1, 2, 6, 8], False\nf64[2, 1, 6, 7], [6, 7], [2, 1, 3, 4], True\nf32[1, 3, 4, 4][48, 1, 12, 3], [4, 4], [1, 3, 8, 8], False, 0.5, 0.5";
constexpr std::string_view kVec = "f32[1, 2, 6, 8], [3, 5], False, None\nf64[2, 1, 6, 4], None, False, [0.5, 0.5]";

constexpr OpDef kResampleAntialiasedOps[] = {
    {.schema =
         "aten._upsample_bilinear2d_aa.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
     .infer = inferForward,
     .eval = evalForward<kTriangle>,
     .derive = [](Derivation& d) { shareOut(d, "aten._upsample_bilinear2d_aa_backward.default"); },
     .samples = kForward},
    {.schema =
         "aten._upsample_bicubic2d_aa.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
     .infer = inferForward,
     .eval = evalForward<kCubic>,
     .derive = [](Derivation& d) { shareOut(d, "aten._upsample_bicubic2d_aa_backward.default"); },
     .samples = kForward},
    {.schema =
         "aten._upsample_lanczos2d_aa.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
     .infer = inferForward,
     .eval = evalForward<kLanczos>,
     .derive = [](Derivation& d) { shareOut(d, "aten._upsample_lanczos2d_aa_backward.default"); },
     .samples = kForward},
    {.schema =
         "aten._upsample_bilinear2d_aa_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
         "float? scales_w=None) -> Tensor",
     .infer = inferAntialiasedBackward,
     .eval = evalAntialiasedBackward<kTriangle>,
     .samples = kBackward},
    {.schema =
         "aten._upsample_bicubic2d_aa_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
         "float? scales_w=None) -> Tensor",
     .infer = inferAntialiasedBackward,
     .eval = evalAntialiasedBackward<kCubic>,
     .samples = kBackward},
    {.schema =
         "aten._upsample_lanczos2d_aa_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
         "float? scales_w=None) -> Tensor",
     .infer = inferAntialiasedBackward,
     .eval = evalAntialiasedBackward<kLanczos>,
     .samples = kBackward},
    shorthand(
        "aten._upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        [](Decomposition& d) { return withSize(d, "aten._upsample_bilinear2d_aa.default"); }, kVec),
    shorthand(
        "aten._upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        [](Decomposition& d) { return withSize(d, "aten._upsample_bicubic2d_aa.default"); }, kVec),
    shorthand(
        "aten._upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        [](Decomposition& d) { return withSize(d, "aten._upsample_lanczos2d_aa.default"); }, kVec),
};

}  // namespace

std::span<const OpDef> antialiasedOps() { return kResampleAntialiasedOps; }

}  // namespace cutaway
