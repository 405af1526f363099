// Pooling windows: maxima with positions, averages, and their gradients.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/window_rules.h"

namespace cutaway {
namespace {

Result<ValueType> inferMaxPool(const InferContext& c, size_t spatial, DType positions) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const Windows windows, readWindows(c, self, spatial));
    TensorType values = TensorType::contiguous(self.dtype, windows.outSizes, self.device);
    values.strides = pooledStrides(self, windows.outSizes);
    TensorType where = values;
    where.dtype = positions;
    return ValueType(TupleType{values, where});
}

template <class T>
T leastOf() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::lowest();
}

/// Maxima of all windows and, for each, body(result position, input position and kernel element, maximum) once.
/// Windows without an element of the input have the least value as maximum.
template <class T, class Body>
void forEachMaximum(const Windows& w, const std::vector<T>& in, Body&& body) {
    const int64_t inPlane = w.inPlane(), outPlane = w.outPlane();
    for (int64_t plane = 0; plane < w.planes; ++plane)
        for (int64_t o = 0; o < outPlane; ++o) {
            bool found = false;
            WindowTap best{};
            const auto none = w.forEachTap(o, [&](const WindowTap& tap) {
                const T value = in[static_cast<size_t>(plane * inPlane + tap.input)];
                // The first of equal elements wins, and NaN beats everything.
                if (!found || value > in[static_cast<size_t>(plane * inPlane + best.input)] || isNan(value)) best = tap;
                found = true;
            });
            if (none) body(plane * outPlane + o, *none, leastOf<T>());
            else body(plane * outPlane + o, best, in[static_cast<size_t>(plane * inPlane + best.input)]);
        }
}

EvalResult evalMaxPool(const EvalContext& c, size_t spatial, bool offsets) {
    const Tensor self = c.in(size_t{0});
    auto windows = readWindows(c, *c.tensor(size_t{0}), spatial);
    if (!windows) return std::move(windows).error();
    Tensor values = c.result(0), where = c.result(1);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        std::vector<T> out(static_cast<size_t>(values.numel()));
        std::vector<int64_t> at(out.size());
        forEachMaximum(*windows, in, [&](int64_t o, const WindowTap& tap, T maximum) {
            out[static_cast<size_t>(o)] = maximum;
            at[static_cast<size_t>(o)] = offsets ? tap.kernel : tap.input;
        });
        unpackElements(out, values);
        unpackElements(at, where);
    });
    return TensorList{values, where};
}

/// Results are channels-last whatever the operand is.
Result<ValueType> inferByteMaxPool(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.dtype != DType::U8 || self.rank() != 4)
        return c.fail("needs uint8 images with a batch, not " + self.text());
    CT_TRY(const Windows windows, readWindows(c, self, 2));
    TensorType type = TensorType::contiguous(self.dtype, windows.outSizes, self.device);
    type.strides = *formatStrides(MemoryFormat::ChannelsLast, type.sizes);
    return ValueType(std::move(type));
}
EvalResult evalByteMaxPool(const EvalContext& c) {
    auto windows = readWindows(c, *c.tensor(size_t{0}), 2);
    if (!windows) return std::move(windows).error();
    Tensor values = c.result();
    const std::vector<int64_t> in = packElements<int64_t>(c.in(size_t{0}));
    std::vector<int64_t> out(static_cast<size_t>(values.numel()));
    forEachMaximum(*windows, in, [&](int64_t o, const WindowTap&, int64_t maximum) {
        out[static_cast<size_t>(o)] = std::max<int64_t>(maximum, 0);
    });
    unpackElements(out, values);
    return values;
}

/// Offset of the maximum in the whole kernel: the first maximum, or the last NaN if there is one, as PyTorch's loop
/// leaves it. Never an element in the padding before the input, which is read as -inf and could be the first.
Expr maximumOffset(LowerContext& c, const Windows& windows, const SymDims& kernel, size_t lead,
                   const LowerContext::Body& element) {
    const auto flat = [&](const std::vector<Expr>& at) {
        Expr position = Expr::integer(0);
        for (size_t i = 0; i < kernel.size(); ++i) position = position * kernel[i].expr() + at[i];
        return position;
    };
    const Expr first = c.reduce(ReduceKind::ArgMax, kernel, element), zero = Expr::integer(0);
    const Expr lastNan = c.reduce(ReduceKind::Max, kernel, [&](const std::vector<Expr>& r) {
        return Expr::where(Expr::call("isnan", {element(r)}, DType::Bool), flat(r), Expr::integer(-1));
    });
    std::vector<Expr> begin;
    for (size_t i = 0; i < kernel.size(); ++i) {
        const Expr start = windows.positionExpr(i, c.index()[lead + i], zero),
                   step = Expr::integer(windows.dilation[i]);
        const Expr skipped = Expr::make(ExprKind::FloorDiv, {step - Expr::integer(1) - start, step});
        begin.push_back(windows.padding[i] == 0 ? zero
                                                : Expr::where(compare(ExprKind::Lt, start, zero), skipped, zero));
    }
    const Expr inside = flat(begin);
    const Expr found = Expr::where(compare(ExprKind::Lt, first, inside), inside, first);
    return Expr::where(compare(ExprKind::Ge, lastNan, zero), lastNan, found);
}

/// What a max pool gives beside the maxima.
enum class Beside : uint8_t { Positions, Offsets, Nothing };
Expr lowerMaxPool(LowerContext& c, size_t spatial, Beside beside) {
    const TensorType self = c.in(size_t{0});
    auto windows = readWindows(c, self, spatial);
    if (!windows) return Expr();
    const size_t lead = self.sizes.size() - spatial;
    SymDims kernel;
    // Maxima need only the kernel elements that can meet the input; offsets count in the whole kernel.
    for (size_t d = 0; d < spatial; ++d)
        kernel.push_back(c.resultNumber() == 0 ? windows->reach(d) : windows->kernel[d]);
    const bool floating = isFloating(self.dtype);
    // No integer loses against all others; for the maxima of bytes alone it is enough that none is below 0.
    if (!floating && (self.dtype != DType::U8 || beside != Beside::Nothing)) return Expr();
    const DType dtype = computeTypeOf(self.dtype);
    const Expr outside =
        floating ? Expr::real(-std::numeric_limits<double>::infinity(), dtype) : Expr::integer(0, dtype);
    auto element = [&](const std::vector<Expr>& r) {
        std::vector<Expr> at(c.index().begin(), c.index().begin() + static_cast<int64_t>(lead));
        Expr inside = Expr::boolean(true);
        for (size_t i = 0; i < spatial; ++i) {
            const Expr position = windows->positionExpr(i, c.index()[lead + i], r[i]);
            if (windows->padding[i] > 0 || windows->reachesBeyond(i)) {
                inside = inside && compare(ExprKind::Ge, position, Expr::integer(0));
                inside = inside && compare(ExprKind::Lt, position, self.sizes[lead + i].expr());
            }
            at.push_back(position);
        }
        return c.guarded(
            inside, [&] { return c.loadAt(0, at); }, outside);
    };
    if (c.resultNumber() == 0) return c.reduce(ReduceKind::Max, kernel, element);
    const Expr offset = maximumOffset(c, *windows, kernel, lead, element);
    if (beside == Beside::Offsets) return offset;
    return flatPosition(*windows, self.sizes, offset,
                        {c.index().begin() + static_cast<int64_t>(lead), c.index().end()});
}

Values decomposeMaxPool(Decomposition& d, int64_t spatial) {
    const Value self = d.in(0);
    auto windows = readWindows(d, self.type(), static_cast<size_t>(spatial));
    if (!windows) return Values::notHandled();
    int64_t count = 1;
    for (int64_t size : windows->kernel) count *= size;
    if (count > 25) return Values::notHandled();  // beyond that the kernel is kept whole
    const Value pair = d.call("prims._low_memory_max_pool_with_offsets.default",
                              {self, Argument(windows->kernel), Argument(windows->stride), Argument(windows->padding),
                               Argument(windows->dilation), d.arg("ceil_mode")});
    const Value values = pair[0], offsets = pair[1];
    const SymDims sizes(self.sizes().end() - spatial, self.sizes().end());
    const Value indices = d.call("prims._low_memory_max_pool_offsets_to_indices.default",
                                 {offsets, Argument(windows->kernel), Argument(sizes), Argument(windows->stride),
                                  Argument(windows->padding), Argument(windows->dilation)});
    return {values, indices};
}

Result<ValueType> inferOffsetsToIndices(const InferContext& c) {
    CT_TRY(const TensorType offsets, c.tensor(size_t{0}));
    CT_TRY(const SymDims sizes, c.sizes("input_size"));
    if (static_cast<int64_t>(sizes.size()) > offsets.rank())
        return c.fail("more input sizes than the offsets have dims");
    numel(sizes);  // throws SizeError where a position in the plane does not fit into 64 bits
    for (const char* param : {"kernel_size", "stride", "padding", "dilation"}) {
        CT_TRY(const std::vector<int64_t> values, c.integers(param));
        if (values.size() != sizes.size())
            return c.fail("'" + std::string(param) + "' has " + std::to_string(values.size()) + " numbers for " +
                          std::to_string(sizes.size()) + " dims");
        const int64_t least = std::string_view(param) == "padding" ? 0 : 1;
        for (const int64_t value : values)
            if (value < least || value > std::numeric_limits<int32_t>::max())
                return c.fail("'" + std::string(param) + "' of " + std::to_string(value) + " is out of range");
    }
    if (isFloating(offsets.dtype) || isComplex(offsets.dtype))
        return c.fail("the offsets are integers, not " + offsets.text());
    TensorType type = TensorType::contiguous(DType::I64, offsets.sizes, offsets.device);
    type.strides = preservedStrides(offsets);
    return ValueType(std::move(type));
}

/// Numbers of the offsets_to_indices call as windows without an input: enough to place a kernel element.
Windows placedWindows(const InferContext& c, const std::vector<int64_t>& inSizes) {
    Windows w;
    w.kernel = *c.integers("kernel_size");
    w.stride = *c.integers("stride");
    w.padding = *c.integers("padding");
    w.dilation = *c.integers("dilation");
    w.in = inSizes;
    return w;
}

EvalResult evalOffsetsToIndices(const EvalContext& c) {
    const Tensor offsets = c.in(size_t{0});
    const Windows w = placedWindows(c, c.integersOf("input_size"));
    const size_t spatial = w.kernel.size();
    const std::vector<int64_t> in = packElements<int64_t>(offsets);
    std::vector<int64_t> out(in.size());
    const Dims outSizes(offsets.sizes().end() - static_cast<int64_t>(spatial), offsets.sizes().end());
    for (size_t i = 0; i < in.size(); ++i) {
        int64_t kernel = in[i], place = static_cast<int64_t>(i), position = 0, scale = 1;
        for (size_t d = spatial; d-- > 0;) {
            const int64_t tap = d == 0 ? kernel : kernel % w.kernel[d];  // dim 0 is not wrapped, as in PyTorch
            const int64_t at = place % outSizes[d] * w.stride[d] - w.padding[d] + tap * w.dilation[d];
            position += at * scale;
            scale *= w.in[d];
            place /= outSizes[d];
            kernel /= w.kernel[d];
        }
        out[i] = position;
    }
    Tensor result = c.result();
    unpackElements(out, result);
    return result;
}

Expr lowerOffsetsToIndices(LowerContext& c) {
    const SymDims sizes = c.sizesOf("input_size");
    const Windows w = placedWindows(c, std::vector<int64_t>(sizes.size(), 0));
    const Expr offset = Expr::cast(c.loadAt(0, c.index()), DType::I64);
    return flatPosition(w, sizes, offset, {c.index().end() - static_cast<int64_t>(sizes.size()), c.index().end()});
}

/// Gradients of windows without an element of the input go nowhere.
EvalResult evalMaxPoolBackward(const EvalContext& c, size_t spatial) {
    const auto windows = readWindows(c, *c.tensor("self"), spatial);
    if (!windows) return windows.error();
    Tensor out = c.result();
    const Tensor gradient = c.in("grad_output");
    int64_t plane = 1, outPlane = 1;
    for (size_t i = 0; i < spatial; ++i) {
        plane *= out.size(-1 - static_cast<int64_t>(i));
        outPlane *= gradient.size(-1 - static_cast<int64_t>(i));
    }
    bool inside = true;
    withAccumulator(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> dy = packElements<T>(gradient);
        const std::vector<int64_t> at = packElements<int64_t>(c.in("indices"));
        std::vector<T> dx(static_cast<size_t>(out.numel()));
        for (size_t i = 0; i < dy.size(); ++i) {
            if (at[i] < 0 || at[i] >= plane) {
                inside = windows->forEachTap(static_cast<int64_t>(i) % outPlane, [](const WindowTap&) {}).has_value();
                if (inside) continue;
                return;
            }
            T& sum = dx[static_cast<size_t>(static_cast<int64_t>(i) / outPlane * plane + at[i])];
            sum = wrapAdd(sum, dy[i]);
        }
        unpackElements(dx, out);
    });
    if (!inside) return c.fail("an index lies outside its plane");
    return out;
}

void deriveMaxPool(Derivation& d, std::string_view backward) {
    d.input(0) = d.call(backward, {d.dy(0), d.in(0), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"),
                                   d.arg("dilation"), d.arg("ceil_mode"), d.out(1)});
}

template <int kSpatial>
Values decomposeMaxValues(Decomposition& d) {
    static constexpr std::string_view kNames[] = {"", "aten.max_pool1d_with_indices.default",
                                                  "aten.max_pool2d_with_indices.default",
                                                  "aten.max_pool3d_with_indices.default"};
    const Value pair = d.call(kNames[kSpatial], {d.in(0), d.arg("kernel_size"), d.arg("stride"), d.arg("padding"),
                                                 d.arg("dilation"), d.arg("ceil_mode")});
    return pair[0];
}

constexpr std::string_view kMaxSamples = R"(
f32[1, 2, 8, 8], [3, 3], [2, 2], [1, 1]
f32[1, 2, 8, 8], 2
f32[2, 6, 7], [2, 3], [1, 2]
f32[1, 2, 7, 7], 3, 2, 0, 1, True
f32[1, 2, 3, 5], 2, 2, 1, 1, True
f32[1, 2, 9, 9], 3, 2, 1, 2
f64[1, 1, 4, 4], 2, 1
bf16[1, 2, 8, 8], 2, 2
f32[2, 3, 4, 5][60, 1, 15, 3], 2
f32[1, 1, 8, 8], 6, 2, 3
)";

/// Whether a window may have no element at all: its steps are longer than a dim. PyTorch's index lies outside then.
bool mayBeEmpty(const std::vector<int64_t>& dilation, const SymDims& sizes) {
    for (size_t i = 0; i < 2; ++i) {
        const int64_t step = dilation.empty() ? 1 : dilation[dilation.size() == 1 ? 0 : i];
        if (!knownLessEqual(SymInt(step), sizes[sizes.size() - 2 + i])) return true;
    }
    return false;
}

/// The gradient added, plane by plane, to the elements that were the maxima; halves are added in f32. Gradients of
/// windows without an element go nowhere, so there the operator stays.
Values scatterMaxima(Decomposition& d) {
    Value gradient = d.in(0), indices = d.in("indices");
    const Value self = d.in(1);
    const size_t rank = self.sizes().size();
    if (rank < 3 || gradient.sizes().size() != rank) return Values::notHandled();
    if (mayBeEmpty(d.integersOf("dilation"), self.sizes())) return Values::notHandled();
    SymDims in = self.sizes();
    if (rank == 3) {
        in.insert(in.begin(), SymInt(1));
        gradient = unsqueeze(gradient, 0);
        indices = unsqueeze(indices, 0);
    }
    const SymDims& out = gradient.sizes();
    const SymInt planes = in[0] * in[1];
    const SymDims flat = {planes, out[2] * out[3]};
    const DType dtype = isHalf(gradient.dtype()) ? DType::F32 : gradient.dtype();
    const Value none = full(d.builder(), {planes, in[2] * in[3]}, Scalar(int64_t{0}), dtype, gradient.type().device);
    const Value values = convert(reshape(gradient, flat), dtype);
    const Value places = reshape(indices, flat);
    const Value added = d.call("aten.scatter_add.default", {none, 1, places, values});
    const Value result = convert(view(added, in), gradient.dtype());
    if (rank == 3) return d.call("aten.squeeze.dim", {result, 0});
    if (!isChannelsLast(self.type()) || isChannelsLast(result.type())) return result;
    return d.call("aten.clone.default", {result}, {{"memory_format", MemoryFormat::ChannelsLast}});
}

constexpr OpDef kPoolOps[] = {
    // Maximum over windows and the flat position of each in its plane. NaN wins; among equals the first.
    {.schema =
         "aten.max_pool2d_with_indices.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
         "bool ceil_mode=False) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferMaxPool(c, 2, DType::I64); },
     .eval = [](const EvalContext& c) { return evalMaxPool(c, 2, false); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeMaxPool(d, 2); },
     .derive = [](Derivation& d) { deriveMaxPool(d, "aten.max_pool2d_with_indices_backward.default"); },
     .lower = [](LowerContext& c) { return lowerMaxPool(c, 2, Beside::Positions); },
     .samples = kMaxSamples},
    {.schema =
         "aten.max_pool3d_with_indices.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
         "bool ceil_mode=False) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferMaxPool(c, 3, DType::I64); },
     .eval = [](const EvalContext& c) { return evalMaxPool(c, 3, false); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeMaxPool(d, 3); },
     .derive = [](Derivation& d) { deriveMaxPool(d, "aten.max_pool3d_with_indices_backward.default"); },
     .lower = [](LowerContext& c) { return lowerMaxPool(c, 3, Beside::Positions); },
     .samples = "f32[1, 2, 4, 4, 4], 2\nf32[1, 1, 5, 5, 5], [3, 2, 3], 2, [1, 0, 1]"},
    {.schema =
         "aten.max_pool2d.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeMaxValues<2>,
     .samples = "f32[1, 2, 8, 8], 3, 2, 1\nf32[2, 6, 6], 2"},
    {.schema =
         "aten.max_pool3d.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeMaxValues<3>,
     .samples = "f32[1, 2, 4, 4, 4], 2"},
    // The gradient scattered to the positions of the maxima.
    {.schema =
         "aten.max_pool2d_with_indices_backward.default(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
         "int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 2); },
     .eval = [](const EvalContext& c) { return evalMaxPoolBackward(c, 2); },
     .expand = Expand::Decompose,
     .decompose = scatterMaxima,
     .decomposedIn = sinceRelease(Release::V2_12),
     .samples = "f32[1, 2, 4, 4], f32[1, 2, 8, 8], [2, 2], [2, 2], [0, 0], [1, 1], False, i64[1, 2, 4, 4]<64\n"
                "f64[2, 3, 3], f64[2, 7, 7], [3, 3], [2, 2], [0, 0], [1, 1], False, i64[2, 3, 3]<49"},
    {.schema =
         "aten.max_pool3d_with_indices_backward.default(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, "
         "int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 3); },
     .eval = [](const EvalContext& c) { return evalMaxPoolBackward(c, 3); },
     .samples =
         "f32[1, 2, 2, 3, 2], f32[1, 2, 4, 6, 4], [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, i64[1, 2, 2, 3, 2]<96"},
    // The compiler's form of max_pool2d_with_indices: positions as offsets inside the window, which fit a byte.
    {.schema =
         "prims._low_memory_max_pool_with_offsets.default(Tensor self, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, "
         "SymInt[] dilation, bool ceil_mode) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const std::vector<int64_t> kernel, c.integers("kernel_size"));
         return inferMaxPool(c, kernel.size(), DType::I8);
     },
     .eval = [](const EvalContext& c) { return evalMaxPool(c, c.integersOf("kernel_size").size(), true); },
     .lower = [](LowerContext& c) { return lowerMaxPool(c, c.integersOf("kernel_size").size(), Beside::Offsets); },
     .samples =
         "f32[1, 2, 8, 8], [3, 3], [2, 2], [1, 1], [1, 1], False\nf32[2, 7, 7], [2, 2], [2, 2], [0, 0], [1, 1], True\nbf16[1, 1, 4, 4], [2, 2], [1, 1], [0, 0], [2, 2], False"},
    // The maxima of bytes, as the compiler writes them for quantized tensors of one scale.
    {.schema =
         "quantized.max_pool2d.default(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferByteMaxPool,
     .eval = evalByteMaxPool,
     .lower = [](LowerContext& c) { return lowerMaxPool(c, 2, Beside::Nothing); },
     .samples =
         "u8[2, 3, 8, 8]<256, [2, 2], [2, 2], [0, 0], [1, 1], False\nu8[1, 2, 7, 9][126, 1, 18, 2]<256, [3, 3], [2, 2], [1, 1], [1, 1], True\nu8[1, 2, 7, 9]<256, [3, 2], [], [0, 0], [2, 1], False"},
    {.schema =
         "prims._low_memory_max_pool_offsets_to_indices.default(Tensor self, SymInt[] kernel_size, SymInt[] input_size, SymInt[] stride, "
         "SymInt[] padding, SymInt[] dilation) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferOffsetsToIndices,
     .eval = evalOffsetsToIndices,
     .lower = lowerOffsetsToIndices,
     .samples =
         "i8[1, 2, 4, 4]<9, [3, 3], [8, 8], [2, 2], [1, 1], [1, 1]\ni8[2, 4, 4]<4, [2, 2], [8, 8], [2, 2], [0, 0], [1, 1]"},
};

}  // namespace

std::span<const OpDef> poolOps() { return kPoolOps; }

}  // namespace cutaway
