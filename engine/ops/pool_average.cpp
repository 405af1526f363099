// Average pooling over fixed and adaptive windows, and its gradients.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/window_rules.h"

namespace cutaway {
namespace {

template <size_t spatial>
Result<ValueType> inferAverage(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const Windows windows, readWindows(c, self, spatial));
    CT_TRY(const int64_t divisor, c.integer("divisor_override", 1));
    if (divisor == 0) return c.fail("a divisor of 0");
    for (size_t d = 0; spatial == 3 && d < windows.in.size(); ++d)
        if (windows.in[d] < windows.kernel[d])
            return c.fail("the kernel is larger than " + self.text() + ", padding aside");
    TensorType type = TensorType::contiguous(self.dtype, windows.outSizes, self.device);
    if (self.sizes.size() == spatial + 2) type.strides = pooledStrides(self, windows.outSizes);
    return ValueType(std::move(type));
}

/// What the sum over the window of output position `o` is divided by: the override, the window with the padding it
/// covers (cut at the padding's end, in ceil mode), or only the elements inside.
int64_t divisorAt(const InferContext& c, const Windows& w, int64_t o) {
    if (c.has("divisor_override")) return *c.integer("divisor_override");
    const bool padded = c.flag("count_include_pad", true);
    int64_t count = 1;
    for (size_t d = w.kernel.size(); d-- > 0;) {
        const int64_t start = o % w.out[d] * w.stride[d] - w.padding[d];
        const int64_t end = std::min(start + w.kernel[d], w.in[d] + w.padding[d]);
        count *= padded ? end - start : std::min(end, w.in[d]) - std::max<int64_t>(start, 0);
        o /= w.out[d];
    }
    return count;
}

template <size_t spatial>
EvalResult evalAverage(const EvalContext& c) {
    auto windows = readWindows(c, *c.tensor(size_t{0}), spatial);
    if (!windows) return std::move(windows).error();
    const Windows& w = *windows;
    Tensor out = c.result();
    withAccumulator(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
            const std::vector<T> in = packElements<T>(c.in(size_t{0}));
            std::vector<T> means(static_cast<size_t>(out.numel()));
            const int64_t inPlane = w.inPlane(), outPlane = w.outPlane();
            for (size_t i = 0; i < means.size(); ++i) {
                const int64_t plane = static_cast<int64_t>(i) / outPlane, o = static_cast<int64_t>(i) % outPlane;
                T sum = 0;
                w.forEachTap(
                    o, [&](const WindowTap& tap) { sum += in[static_cast<size_t>(plane * inPlane + tap.input)]; });
                means[i] = sum / static_cast<T>(divisorAt(c, w, o));
            }
            unpackElements(means, out);
        }
    });
    return out;
}

template <size_t spatial>
EvalResult evalAverageBackward(const EvalContext& c) {
    auto windows = readWindows(c, *c.tensor("self"), spatial);
    if (!windows) return std::move(windows).error();
    const Windows& w = *windows;
    Tensor out = c.result();
    const std::vector<double> dy = packElements<double>(c.in("grad_output"));
    std::vector<double> dx(static_cast<size_t>(out.numel()), 0.0);
    const int64_t inPlane = w.inPlane(), outPlane = w.outPlane();
    for (size_t i = 0; i < dy.size(); ++i) {
        const int64_t plane = static_cast<int64_t>(i) / outPlane, o = static_cast<int64_t>(i) % outPlane;
        const double share = dy[i] / static_cast<double>(divisorAt(c, w, o));
        w.forEachTap(o, [&](const WindowTap& tap) { dx[static_cast<size_t>(plane * inPlane + tap.input)] += share; });
    }
    unpackElements(dx, out);
    return out;
}

/// divisorAt() of the window at `o`.
Expr divisorOf(LowerContext& c, const Windows& w, const TensorType& self, const std::vector<Expr>& o, DType dtype) {
    if (c.has("divisor_override")) return Expr::real(static_cast<double>(c.integerOr("divisor_override", 1)), dtype);
    const bool padded = c.flag("count_include_pad", true);
    const size_t lead = self.sizes.size() - o.size();
    Expr count = Expr::integer(1);
    for (size_t d = 0; d < o.size(); ++d) {
        const bool constant = !w.reachesBeyond(d) ? w.padding[d] == 0 || padded : padded && !c.flag("ceil_mode");
        if (constant) {
            count = count * Expr::integer(w.kernel[d]);
            continue;
        }
        const Expr size = self.sizes[lead + d].expr();
        const Expr start = w.positionExpr(d, o[d], Expr::integer(0));
        const Expr end = Expr::make(
            ExprKind::Min, {start + Expr::integer(w.kernel[d]), size + Expr::integer(padded ? w.padding[d] : 0)});
        const Expr from = padded ? start : Expr::make(ExprKind::Max, {start, Expr::integer(0)});
        count = count * (end + Expr::make(ExprKind::Mul, {from, Expr::integer(-1)}));
    }
    return Expr::cast(count, dtype);
}

/// Each element sums over the windows that cover it: along a dim, backwards from the last that begins at or before it.
template <size_t spatial>
Expr lowerAverageBackward(LowerContext& c) {
    const TensorType self = c.in("self");
    auto windows = readWindows(c, self, spatial);
    if (!windows || !isFloating(self.dtype) || windows->in.empty()) return Expr();
    const Windows& w = *windows;
    const size_t lead = self.sizes.size() - spatial;
    const DType dtype = computeTypeOf(self.dtype);
    SymDims covering;
    for (size_t d = 0; d < spatial; ++d) covering.emplace_back((w.kernel[d] + w.stride[d] - 1) / w.stride[d]);
    return c.reduce(ReduceKind::Sum, covering, [&](const std::vector<Expr>& r) {
        std::vector<Expr> at(c.index().begin(), c.index().begin() + static_cast<int64_t>(lead)), o;
        Expr inside = Expr::boolean(true);
        for (size_t d = 0; d < spatial; ++d) {
            const Expr place = c.index()[lead + d] + Expr::integer(w.padding[d]);
            o.push_back(Expr::make(ExprKind::FloorDiv, {place, Expr::integer(w.stride[d])}) - r[d]);
            at.push_back(o.back());
            inside = inside && compare(ExprKind::Ge, o.back(), Expr::integer(0));
            inside = inside && compare(ExprKind::Lt, o.back(), Expr::integer(w.out[d]));
            const Expr end = o.back() * Expr::integer(w.stride[d]) + Expr::integer(w.kernel[d]);
            if (w.kernel[d] % w.stride[d] != 0) inside = inside && compare(ExprKind::Lt, place, end);
        }
        return c.guarded(
            inside, [&] { return c.loadAt(0, at) / divisorOf(c, w, self, o, dtype); }, Expr::real(0, dtype));
    });
}

template <size_t spatial>
Expr lowerAverage(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    auto windows = readWindows(c, self, spatial);
    if (!windows || !isFloating(self.dtype)) return Expr();
    const Windows& w = *windows;
    const size_t lead = self.sizes.size() - spatial;
    const DType dtype = computeTypeOf(self.dtype);
    SymDims reached;
    for (size_t d = 0; d < spatial; ++d) reached.push_back(w.reach(d));
    const Expr sum = c.reduce(ReduceKind::Sum, reached, [&](const std::vector<Expr>& r) {
        std::vector<Expr> at(c.index().begin(), c.index().begin() + static_cast<int64_t>(lead));
        Expr inside = Expr::boolean(true);
        for (size_t d = 0; d < spatial; ++d) {
            at.push_back(w.positionExpr(d, c.index()[lead + d], r[d]));
            if (w.padding[d] == 0 && !w.reachesBeyond(d)) continue;
            inside = inside && compare(ExprKind::Ge, at.back(), Expr::integer(0));
            inside = inside && compare(ExprKind::Lt, at.back(), self.sizes[lead + d].expr());
        }
        return c.guarded(
            inside, [&] { return c.loadAt(0, at); }, Expr::real(0, dtype));
    });
    return sum / divisorOf(c, w, self, {c.index().begin() + static_cast<int64_t>(lead), c.index().end()}, dtype);
}

// Adaptive windows: output o of `out` covers the input from floor(o in / out) to ceil((o + 1) in / out).
struct AdaptivePlane {
    int64_t inHeight, inWidth, outHeight, outWidth;
    static int64_t start(int64_t o, int64_t in, int64_t out) { return o * in / out; }
    static int64_t end(int64_t o, int64_t in, int64_t out) { return ((o + 1) * in + out - 1) / out; }
    /// body(output position, input position, number of elements in the window)
    template <class Body>
    void forEach(Body&& body) const {
        for (int64_t i = 0; i < outHeight; ++i)
            for (int64_t j = 0; j < outWidth; ++j) {
                const int64_t top = start(i, inHeight, outHeight), bottom = end(i, inHeight, outHeight);
                const int64_t left = start(j, inWidth, outWidth), right = end(j, inWidth, outWidth);
                for (int64_t y = top; y < bottom; ++y)
                    for (int64_t x = left; x < right; ++x)
                        body(i * outWidth + j, y * inWidth + x, (bottom - top) * (right - left));
            }
    }
};

Result<ValueType> inferAdaptive(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymDims wanted, c.sizes("output_size"));
    if (self.rank() != 3 && self.rank() != 4) return c.fail("needs a tensor of three or four dims");
    if (wanted.size() != 2) return c.fail("output_size needs two numbers");
    SymDims sizes = self.sizes;
    for (size_t d = self.sizes.size() - 2; d < self.sizes.size(); ++d)
        if (self.sizes[d] == SymInt(0)) return c.fail("dim " + std::to_string(d) + " has no elements");
    for (size_t d = 0; d < 2; ++d) {
        if (exceeds(0, wanted[d])) return c.fail("negative output size " + wanted[d].text());
        sizes[sizes.size() - 2 + d] = wanted[d];
    }
    TensorType type = TensorType::contiguous(self.dtype, sizes, self.device);
    type.strides = pooledStrides(self, sizes);
    return ValueType(std::move(type));
}

/// Averages (forward) or spreads (backward) every plane.
template <bool kForward>
EvalResult evalAdaptive(const EvalContext& c) {
    const Tensor from = c.in(size_t{0});
    Tensor to = c.result();
    const Tensor& large = kForward ? from : to;
    const Tensor& small = kForward ? to : from;
    const AdaptivePlane plane{large.size(-2), large.size(-1), small.size(-2), small.size(-1)};
    const std::vector<double> in = packElements<double>(from);
    std::vector<double> out(static_cast<size_t>(to.numel()), 0.0);
    const int64_t inSize = from.size(-2) * from.size(-1), outSize = to.size(-2) * to.size(-1);
    const int64_t planes = outSize > 0 ? to.numel() / outSize : 0;
    for (int64_t p = 0; p < planes; ++p)
        plane.forEach([&](int64_t s, int64_t l, int64_t count) {
            const int64_t read = kForward ? l : s, write = kForward ? s : l;
            out[static_cast<size_t>(p * outSize + write)] +=
                in[static_cast<size_t>(p * inSize + read)] / static_cast<double>(count);
        });
    unpackElements(out, to);
    return to;
}

/// A single output element per plane is a mean. It keeps the channels-last memory format, as PyTorch's does.
Values decomposeAdaptive(Decomposition& d) {
    const Value self = d.in(0);
    auto wanted = d.sizes("output_size");
    if (!wanted || wanted->size() != 2 || self.rank() < 3) {
        d.builder().fail(!wanted ? wanted.error()
                                 : d.fail("needs a tensor of three or four dims and two output sizes"));
        return self;
    }
    if (!((*wanted)[0] == SymInt(1)) || !((*wanted)[1] == SymInt(1)))
        return d.call("aten._adaptive_avg_pool2d.default", {self, Argument(*wanted)});
    const Value mean = d.call("aten.mean.dim", {self, Argument(Dims{-1, -2}), true});
    if (!isChannelsLast(self.type())) return mean;
    const SymInt n = self.size(0), channels = self.size(1);
    return d.call("aten.as_strided.default",
                  {mean, Argument(SymDims{n, channels, 1, 1}), Argument(SymDims{channels, 1, channels, channels})});
}

constexpr OpDef kPoolAverageOps[] = {
    // Mean over windows; how padding counts is said at divisorAt. Integers truncate.
    {.schema =
         "aten.avg_pool2d.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, "
         "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .infer = inferAverage<2>,
     .eval = evalAverage<2>,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.avg_pool2d_backward.default",
                                 {d.dy(), d.in(0), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"),
                                  d.arg("ceil_mode"), d.arg("count_include_pad"), d.arg("divisor_override")});
         },
     .lower = lowerAverage<2>,
     .samples = R"(
f32[1, 2, 8, 8], [2, 2]
f32[2, 7, 6], [3, 2], [2, 1], [1, 1]
f32[1, 2, 7, 7], [3, 3], [2, 2], [1, 1], True
f32[1, 2, 3, 5], [2, 2], [2, 2], [1, 1], True
f32[1, 2, 7, 7], [3, 3], [2, 2], [1, 1], True, False
f32[1, 2, 7, 7], [3, 3], [2, 2], [1, 1], False, False
f32[1, 1, 4, 4], [2, 2], [2, 2], [0, 0], False, True, 3
f64[1, 1, 5, 5], [2, 2], [1, 1]
bf16[1, 2, 8, 8], [2, 2]
f32[2, 3, 4, 5][60, 1, 15, 3], [2, 2]
f32[1, 2, 2, 3], [2560, 7], [2560, 7], 0, True
)"},
    {.schema =
         "aten.avg_pool2d_backward.default(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, "
         "bool count_include_pad, int? divisor_override) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 2); },
     .eval = evalAverageBackward<2>,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.avg_pool2d.default",
                                 {d.dy(), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"), d.arg("ceil_mode"),
                                  d.arg("count_include_pad"), d.arg("divisor_override")});
         },
     .lower = lowerAverageBackward<2>,
     .samples = R"(
f32[1, 2, 4, 4], f32[1, 2, 8, 8], [2, 2], [], [0, 0], False, True, None
f64[2, 4, 4], f64[2, 7, 7], [3, 3], [2, 2], [1, 1], True, False, None
f32[1, 1, 3, 3], f32[1, 1, 4, 4], [2, 2], [1, 1], [0, 0], False, True, 3
)"},
    {.schema =
         "aten.avg_pool3d.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, "
         "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .infer = inferAverage<3>,
     .eval = evalAverage<3>,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.avg_pool3d_backward.default",
                                 {d.dy(), d.in(0), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"),
                                  d.arg("ceil_mode"), d.arg("count_include_pad"), d.arg("divisor_override")});
         },
     .lower = lowerAverage<3>,
     .samples =
         "f32[1, 2, 4, 6, 4], 2\nf64[2, 5, 4, 5], [3, 2, 3], [2, 1, 2], [1, 1, 1]\nf32[1, 1, 5, 5, 5], [3, 3, 3], [2, 2, 2], [1, 1, 1], True, False\nf32[1, 1, 4, 4, 4], 2, 2, 0, False, True, 3"},
    {.schema =
         "aten.avg_pool3d_backward.default(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, "
         "bool count_include_pad, int? divisor_override) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 3); },
     .eval = evalAverageBackward<3>,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.avg_pool3d.default",
                                 {d.dy(), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"), d.arg("ceil_mode"),
                                  d.arg("count_include_pad"), d.arg("divisor_override")});
         },
     .lower = lowerAverageBackward<3>,
     .samples = "f32[1, 2, 2, 3, 2], f32[1, 2, 4, 6, 4], [2, 2, 2], [], [0, 0, 0], False, True, None"},
    // Mean over windows that divide each plane into output_size parts, overlapping where it does not divide.
    {.schema = "aten._adaptive_avg_pool2d.default(Tensor self, SymInt[2] output_size) -> Tensor",
     .infer = inferAdaptive,
     .eval = evalAdaptive<true>,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten._adaptive_avg_pool2d_backward.default", {d.dy(), d.in(0)});
         },
     .lower = [](LowerContext& c) { return lowerEqualParts(c, 2); },
     .samples =
         "f32[1, 2, 8, 8], [3, 2]\nf32[2, 7, 5], [2, 2]\nf64[1, 1, 4, 4], [4, 4]\nbf16[1, 2, 6, 6], [3, 3]\nf32[2, 3, 4, 5][60, 1, 15, 3], [2, 2]"},
    {.schema = "aten._adaptive_avg_pool2d_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 2); },
     .eval = evalAdaptive<false>,
     .samples = "f32[1, 2, 3, 2], f32[1, 2, 8, 8]\nf64[2, 2, 2], f64[2, 7, 5]"},
    {.schema = "aten.adaptive_avg_pool2d.default(Tensor self, SymInt[2] output_size) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeAdaptive,
     .samples =
         "f32[1, 2, 8, 8], [1, 1]\nf32[2, 3, 4, 5][60, 1, 15, 3], [1, 1]\nf32[1, 2, 8, 8], [3, 2]\nf32[2, 8, 8], [1, 1]"},
};

}  // namespace

std::span<const OpDef> averagePoolOps() { return kPoolAverageOps; }

}  // namespace cutaway
