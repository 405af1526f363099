// Gradients of resampling as PyTorch's kernels compute them, for graphs that hold them as one call: every element of
// the gradient is shared out to the elements that the resampled one was made from.
#include <cmath>

#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

enum class ResampleKind { Nearest, NearestExact, Linear, Cubic };

/// An element along one dim and its share.
struct Share {
    int64_t at = 0;
    double weight = 1;
};
/// A position as an index, also where a scale near 0 sends it beyond all numbers of 64 bits; NaN is 0.
int64_t indexOf(double position, int64_t least, int64_t most) {
    if (!(position > static_cast<double>(least))) return least;
    return position < static_cast<double>(most) ? static_cast<int64_t>(position) : most;
}
/// The shares of output element `o` along a dim.
std::vector<Share> sharesAt(ResampleKind kind, int64_t o, int64_t in, int64_t out, std::optional<double> scale,
                            bool alignCorners) {
    const bool nearest = kind == ResampleKind::Nearest || kind == ResampleKind::NearestExact;
    double step = scale && *scale > 0 ? 1.0 / *scale : static_cast<double>(in) / static_cast<double>(out);
    if (!nearest && alignCorners) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    // Here PyTorch takes no scale where a size stays or doubles, also of lines and volumes (2.15).
    if (kind == ResampleKind::Nearest && (out == in || out == 2 * in)) return {{o / (out / in), 1}};
    if (nearest) {
        const auto narrow = static_cast<float>(step);
        const float at =
            std::floor((static_cast<float>(o) + (kind == ResampleKind::NearestExact ? 0.5f : 0.0f)) * narrow);
        return {{indexOf(at, 0, in - 1), 1}};
    }
    const double place = alignCorners ? step * static_cast<double>(o) : step * (static_cast<double>(o) + 0.5) - 0.5;
    if (kind == ResampleKind::Linear) {
        const double at = std::max(place, 0.0);
        const int64_t low = indexOf(at, 0, in - 1), high = std::min(low + 1, in - 1);
        const double part = std::min(at - static_cast<double>(low), 1.0);
        return {{low, 1 - part}, {high, part}};
    }
    constexpr double kA = -0.75;
    const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
    const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
    const double base = std::floor(place), t = place - base;
    const double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    std::vector<Share> shares;
    for (int k = 0; k < 4; ++k) shares.push_back({indexOf(base + k - 1, 0, in - 1), weights[k]});
    return shares;
}

template <size_t spatial>
Result<ValueType> inferResampleBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const SymDims resampled, c.sizes("output_size"));
    CT_TRY(const SymDims sizes, c.sizes("input_size"));
    if (resampled.size() != spatial || sizes.size() != spatial + 2 || gradient.sizes.size() != spatial + 2)
        return c.fail("needs a gradient and an input of " + std::to_string(spatial + 2) + " dims, and " +
                      std::to_string(spatial) + " output sizes");
    if (!isFloating(gradient.dtype) && gradient.dtype != DType::U8)
        return c.fail("needs a floating-point gradient, not " + gradient.text());
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
        const SymInt &wanted = dim < 2 ? sizes[dim] : resampled[dim - 2], &given = gradient.sizes[dim];
        if (differ(wanted, given))
            return c.fail("the gradient " + gradient.text() + " does not have the size " + wanted.text() + " in dim " +
                          std::to_string(dim));
        if (dim > 0 && (sizes[dim] == SymInt(0) || given == SymInt(0)))
            return c.fail("dim " + std::to_string(dim) + " has no elements");
    }
    TensorType type = TensorType::contiguous(gradient.dtype, sizes, gradient.device);
    // The cubic kernel alone does not look at the layout.
    if (!c.op().name().starts_with("aten.upsample_bicubic") && isChannelsLast(gradient))
        type.strides = *formatStrides(spatial == 3 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, sizes);
    return ValueType(std::move(type));
}

template <size_t spatial, ResampleKind kind>
EvalResult evalResampleBackward(const EvalContext& c) {
    static constexpr const char* kScales[] = {"scales_d", "scales_h", "scales_w"};
    Tensor out = c.result();
    const Tensor gradient = c.in(size_t{0});
    const bool align = c.op().schema()->find("align_corners") >= 0 && c.flag("align_corners");
    std::vector<std::vector<std::vector<Share>>> shares(spatial);  // by dim, then by output index
    for (size_t i = 0; i < spatial; ++i) {
        const auto scale = c.scalar(spatial == 1 ? "scales" : kScales[3 - spatial + i]);
        const int64_t to = gradient.sizes()[i + 2];
        for (int64_t o = 0; o < to; ++o)
            shares[i].push_back(sharesAt(kind, o, out.sizes()[i + 2], to,
                                         scale ? std::optional(toDouble(*scale)) : std::nullopt, align));
    }
    const std::vector<double> g = packElements<double>(gradient);
    std::vector<double> sums(static_cast<size_t>(out.numel()), 0.0);
    Dims index(spatial + 1, 0);  // the plane, then the position in it
    const int64_t planes = gradient.sizes()[0] * gradient.sizes()[1];
    for (size_t at = 0; at < g.size(); ++at) {
        int64_t rest = static_cast<int64_t>(at);
        for (size_t i = spatial; i-- > 0;) {
            index[i + 1] = rest % gradient.sizes()[i + 2];
            rest /= gradient.sizes()[i + 2];
        }
        index[0] = rest % std::max<int64_t>(planes, 1);
        std::vector<Share> joint = {{index[0], g[at]}};
        for (size_t i = 0; i < spatial; ++i) {
            std::vector<Share> next;
            for (const Share& from : joint)
                for (const Share& share : shares[i][static_cast<size_t>(index[i + 1])])
                    next.push_back({from.at * out.sizes()[i + 2] + share.at, from.weight * share.weight});
            joint = std::move(next);
        }
        for (const Share& share : joint) sums[static_cast<size_t>(share.at)] += share.weight;
    }
    unpackElements(sums, out);
    return out;
}

template <size_t spatial, ResampleKind kind>
constexpr OpDef resampleBackwardRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .infer = inferResampleBackward<spatial>,
            .eval = evalResampleBackward<spatial, kind>,
            .samples = samples};
}
constexpr std::string_view kPlane =
    "f32[1, 2, 6, 8], [6, 8], [1, 2, 3, 4], False\nf64[2, 1, 3, 2], [3, 2], [2, 1, 5, 4], True\nf32[1, 3, 8, 8][192, 1, 24, 3], [8, 8], [1, 3, 4, 4], False, 2.0, 2.0";
constexpr std::string_view kNearPlane =
    "f32[1, 2, 6, 8], [6, 8], [1, 2, 3, 4]\nf64[2, 1, 3, 2], [3, 2], [2, 1, 5, 4]\nf32[1, 3, 8, 8][192, 1, 24, 3], [8, 8], [1, 3, 4, 4], 2.0, 2.0";

constexpr OpDef kResampleBackwardOps[] = {
    resampleBackwardRow<1, ResampleKind::Nearest>(
        "aten.upsample_nearest1d_backward.default(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "f32[1, 2, 7], [7], [1, 2, 4]\nf64[2, 3, 3], [3], [2, 3, 5]"),
    resampleBackwardRow<2, ResampleKind::Nearest>(
        "aten.upsample_nearest2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        kNearPlane),
    resampleBackwardRow<3, ResampleKind::Nearest>(
        "aten.upsample_nearest3d_backward.default(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        "f32[1, 2, 6, 5, 4], [6, 5, 4], [1, 2, 3, 4, 2]"),
    resampleBackwardRow<1, ResampleKind::NearestExact>(
        "aten._upsample_nearest_exact1d_backward.default(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "f32[1, 2, 7], [7], [1, 2, 4]"),
    resampleBackwardRow<2, ResampleKind::NearestExact>(
        "aten._upsample_nearest_exact2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        kNearPlane),
    resampleBackwardRow<3, ResampleKind::NearestExact>(
        "aten._upsample_nearest_exact3d_backward.default(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, "
        "float? scales_h=None, float? scales_w=None) -> Tensor",
        "f32[1, 2, 6, 5, 4], [6, 5, 4], [1, 2, 3, 4, 2]"),
    resampleBackwardRow<1, ResampleKind::Linear>(
        "aten.upsample_linear1d_backward.default(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor",
        "f32[1, 2, 7], [7], [1, 2, 4], False\nf64[2, 3, 3], [3], [2, 3, 5], True"),
    resampleBackwardRow<2, ResampleKind::Linear>(
        "aten.upsample_bilinear2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        kPlane),
    resampleBackwardRow<3, ResampleKind::Linear>(
        "aten.upsample_trilinear3d_backward.default(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, "
        "float? scales_h=None, float? scales_w=None) -> Tensor",
        "f32[1, 2, 6, 5, 4], [6, 5, 4], [1, 2, 3, 4, 2], False\nf64[1, 1, 2, 3, 2], [2, 3, 2], [1, 1, 3, 4, 2], True"),
    resampleBackwardRow<2, ResampleKind::Cubic>(
        "aten.upsample_bicubic2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
        "float? scales_w=None) -> Tensor",
        kPlane),
};

}  // namespace

std::span<const OpDef> resampleBackwardOps() { return kResampleBackwardOps; }

}  // namespace cutaway
