// Pooling to a given size: windows that divide each dim into that many parts, overlapping where it does not divide.
// The two-dim average is in pool_average.cpp. Pools along one dim run as planes of one row.
#include <array>

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/window_rules.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// Sizes of the last dims before and after, and the walk over them. One walk per element of the result: no memory is
/// asked for on the way.
class Parts {
  public:
    Parts(const Dims& in, const Dims& out, size_t spatial) {
        for (size_t d = 0; d < spatial; ++d) {
            m_in[kDims - spatial + d] = in[in.size() - spatial + d];
            m_out[kDims - spatial + d] = out[out.size() - spatial + d];
        }
        m_inPlane = numel(Dims(m_in.begin(), m_in.end()));
        m_outPlane = numel(Dims(m_out.begin(), m_out.end()));
    }
    int64_t inPlane() const { return m_inPlane; }
    int64_t outPlane() const { return m_outPlane; }
    /// body(input position) for each element of the window of flat output position `o`, in row-major order.
    template <class Body>
    void forEach(int64_t o, Body&& body) const {
        const Span z = span(0, o / m_out[2] / m_out[1]), y = span(1, o / m_out[2] % m_out[1]),
                   x = span(2, o % m_out[2]);
        for (int64_t i = z.begin; i < z.end; ++i)
            for (int64_t j = y.begin; j < y.end; ++j)
                for (int64_t k = x.begin; k < x.end; ++k) body((i * m_in[1] + j) * m_in[2] + k);
    }
    int64_t count(int64_t o) const {
        return span(0, o / m_out[2] / m_out[1]).size() * span(1, o / m_out[2] % m_out[1]).size() *
               span(2, o % m_out[2]).size();
    }

  private:
    static constexpr size_t kDims = 3;
    struct Span {
        int64_t begin, end;
        int64_t size() const { return end - begin; }
    };
    Span span(size_t d, int64_t at) const {
        return {at * m_in[d] / m_out[d], ((at + 1) * m_in[d] + m_out[d] - 1) / m_out[d]};
    }
    std::array<int64_t, kDims> m_in{1, 1, 1}, m_out{1, 1, 1};  // missing dims lead
    int64_t m_inPlane = 0, m_outPlane = 0;
};

Result<TensorType> inferParts(const InferContext& c, size_t spatial) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymDims wanted, c.sizes("output_size"));
    const auto rank = static_cast<size_t>(self.rank());
    if (rank != spatial + 1 && rank != spatial + 2)
        return c.fail("needs a tensor of " + std::to_string(spatial + 1) + " or " + std::to_string(spatial + 2) +
                      " dims, not " + self.text());
    if (wanted.size() != spatial) return c.fail("output_size needs " + std::to_string(spatial) + " numbers");
    SymDims sizes = self.sizes;
    for (size_t d = 1; d < rank; ++d)
        if (sizes[d] == SymInt(0)) return c.fail("a dim of " + self.text() + " has no elements to pool");
    for (size_t d = 0; d < spatial; ++d) {
        if (exceeds(0, wanted[d])) return c.fail("negative output size " + wanted[d].text());
        sizes[rank - spatial + d] = wanted[d];
    }
    TensorType type = TensorType::contiguous(self.dtype, sizes, self.device);
    if (rank == spatial + 2) type.strides = pooledStrides(self, sizes);
    return type;
}
EvalResult evalAverage3d(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in(size_t{0});
    const Parts parts(self.sizes(), out.sizes(), 3);
    const std::vector<double> in = packElements<double>(self);
    std::vector<double> means(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < means.size(); ++i) {
        const int64_t plane = static_cast<int64_t>(i) / parts.outPlane() * parts.inPlane(),
                      o = static_cast<int64_t>(i) % parts.outPlane();
        double sum = 0;
        parts.forEach(o, [&](int64_t at) { sum += in[static_cast<size_t>(plane + at)]; });
        means[i] = sum / static_cast<double>(parts.count(o));
    }
    unpackElements(means, out);
    return out;
}
EvalResult evalAverage3dBackward(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor gradient = c.in("grad_output");
    const Parts parts(out.sizes(), gradient.sizes(), 3);
    const std::vector<double> dy = packElements<double>(gradient);
    std::vector<double> dx(static_cast<size_t>(out.numel()), 0.0);
    for (size_t i = 0; i < dy.size(); ++i) {
        const int64_t plane = static_cast<int64_t>(i) / parts.outPlane() * parts.inPlane(),
                      o = static_cast<int64_t>(i) % parts.outPlane();
        const double share = dy[i] / static_cast<double>(parts.count(o));
        parts.forEach(o, [&](int64_t at) { dx[static_cast<size_t>(plane + at)] += share; });
    }
    unpackElements(dx, out);
    return out;
}

Result<ValueType> inferLargest(const InferContext& c, size_t spatial) {
    CT_TRY(const TensorType values, inferParts(c, spatial));
    if (!isFloating(values.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(values.dtype).torchName));
    TensorType positions = values;
    positions.dtype = DType::I64;
    return ValueType(TupleType{values, positions});
}
EvalResult evalLargest(const EvalContext& c, size_t spatial) {
    Tensor values = c.result(0), positions = c.result(1);
    const Tensor self = c.in(size_t{0});
    const Parts parts(self.sizes(), values.sizes(), spatial);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        std::vector<T> best(static_cast<size_t>(values.numel()));
        std::vector<int64_t> where(best.size(), -1);
        for (size_t i = 0; i < best.size(); ++i) {
            const int64_t plane = static_cast<int64_t>(i) / parts.outPlane() * parts.inPlane();
            parts.forEach(static_cast<int64_t>(i) % parts.outPlane(), [&](int64_t at) {
                const T value = in[static_cast<size_t>(plane + at)];
                if (where[i] >= 0 && !(value > best[i]) && !isNan(value)) return;
                best[i] = value;
                where[i] = at;
            });
        }
        unpackElements(best, values);
        unpackElements(where, positions);
    });
    return TensorList{values, positions};
}
/// The gradient added up at the positions of the maxima.
EvalResult evalLargestBackward(const EvalContext& c, size_t spatial) {
    Tensor out = c.result();
    const Tensor gradient = c.in("grad_output");
    const Parts parts(out.sizes(), gradient.sizes(), spatial);
    const std::vector<double> dy = packElements<double>(gradient);
    const std::vector<int64_t> at = packElements<int64_t>(c.in("indices"));
    std::vector<double> dx(static_cast<size_t>(out.numel()), 0.0);
    if (at.size() != dy.size()) return c.fail("the indices do not have the gradient's shape");
    for (size_t i = 0; i < dy.size(); ++i) {
        if (at[i] < 0 || at[i] >= parts.inPlane()) return c.fail("an index lies outside its plane");
        dx[static_cast<size_t>(static_cast<int64_t>(i) / parts.outPlane() * parts.inPlane() + at[i])] += dy[i];
    }
    unpackElements(dx, out);
    return out;
}
/// Sizes that divide are pooled by fixed windows.
/// Of the last `dims` dims as a whole: the maxima, and their positions in them.
Values largestOfAll(Decomposition& d, int64_t dims) {
    const Value x = d.in(size_t{0});
    std::vector<int64_t> last;
    for (int64_t dim = -dims; dim < 0; ++dim) last.push_back(dim);
    const Value values = d.call("aten.amax.default", {x, Argument(last), true});
    SymDims flat(x.sizes().begin(), x.sizes().end() - dims);
    flat.push_back(numel(SymDims(x.sizes().end() - dims, x.sizes().end())));
    Value positions = d.call("aten.argmax.default", {reshape(x, flat), int64_t{-1}});
    for (int64_t dim = 0; dim < dims; ++dim) positions = unsqueeze(positions, -1);
    return {values, positions};
}
/// By windows of one size, where the parts are equal.
Values decomposeLargest(Decomposition& d, int64_t dims) {
    const Value x = d.in(size_t{0});
    const SymDims wanted = d.sizesOf("output_size");
    if (has(d.release(), ReleaseChange::MaximumOfAll) &&
        std::all_of(wanted.begin(), wanted.end(), [](const SymInt& size) { return size == SymInt(1); }))
        return largestOfAll(d, dims);
    std::vector<int64_t> kernel;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const SymInt in = x.size(x.rank() - dims + static_cast<int64_t>(i));
        if (!in.isInt() || !wanted[i].isInt() || wanted[i].value() < 1 || in.value() % wanted[i].value() != 0)
            return Values::notHandled();
        kernel.push_back(in.value() / wanted[i].value());
    }
    const Value pair = d.call("aten.max_pool" + std::to_string(dims) + "d_with_indices.default", {x, Argument(kernel)});
    return {pair[0], pair[1]};
}

// -- along one dim

/// [0, n] or [n] beside `first`, from a parameter of one number.
std::vector<int64_t> beside(Decomposition& d, const char* param, int64_t first) {
    auto numbers = d.integers(param);
    if (!numbers) d.builder().fail(numbers.error());
    if (!numbers || numbers->empty()) return {};
    return {first, (*numbers)[0]};
}
bool isLine(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (x.rank() == 2 || x.rank() == 3) return true;
    d.builder().fail(d.fail("needs a tensor of two or three dims, not " + x.type().text()));
    return false;
}
Value asPlane(Decomposition& d) { return unsqueeze(d.in(size_t{0}), -2); }
Value asLine(Decomposition& d, const Value& plane) { return d.call("aten.squeeze.dim", {plane, -2}); }
Values decomposeAverage1d(Decomposition& d) {
    if (!isLine(d)) return Value();
    const std::vector<int64_t> kernel = beside(d, "kernel_size", 1), stride = beside(d, "stride", 1);
    return asLine(d, d.call("aten.avg_pool2d.default",
                            {asPlane(d), Argument(kernel), Argument(stride.empty() ? kernel : stride),
                             Argument(beside(d, "padding", 0)), d.arg("ceil_mode"), d.arg("count_include_pad")}));
}
Value largest1d(Decomposition& d) {
    const std::vector<int64_t> kernel = beside(d, "kernel_size", 1), stride = beside(d, "stride", 1);
    return d.call("aten.max_pool2d_with_indices.default",
                  {asPlane(d), Argument(kernel), Argument(stride.empty() ? kernel : stride),
                   Argument(beside(d, "padding", 0)), Argument(beside(d, "dilation", 1)), d.arg("ceil_mode")});
}
Value adaptive1d(Decomposition& d, std::string_view op) {
    return d.call(op, {asPlane(d), Argument(beside(d, "output_size", 1))});
}

constexpr OpDef composite(std::string_view schema, Fn<Values(Decomposition&)> decompose, std::string_view samples) {
    return {.schema = schema,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = decompose,
            .samples = samples};
}
constexpr std::string_view kLargest2d =
    "f32[2, 3, 8, 6]!, [4, 3]\nf32[2, 3, 8, 6]!, [3, 4]\nf32[3, 7, 5], [2, 2]\nf64[1, 2, 4, 4], [4, 4]\nbf16[1, 2, 6, 6], [2, 3]\nf32[1, 3, 4, 5][60, 1, 15, 3], [2, 2]\nf32[1, 2, 6, 6], [1, 1]";

constexpr OpDef kPoolAdaptiveOps[] = {
    composite(
        "aten.avg_pool1d.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        decomposeAverage1d, "f32[2, 3, 8], 2\nf32[3, 9], [3], [2], [1]\nf32[1, 2, 7], [3], [2], [1], True, False"),
    composite(
        "aten.max_pool1d.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
        [](Decomposition& d) -> Values { return isLine(d) ? asLine(d, largest1d(d)[0]) : Value(); },
        "f32[2, 3, 8], 2\nf32[3, 9], [3], [2], [1]\nf32[1, 2, 9], [2], [2], [0], [2], True"),
    composite(
        "aten.max_pool1d_with_indices.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        [](Decomposition& d) -> Values {
            if (!isLine(d)) return {Value(), Value()};
            const Value pair = largest1d(d), values = pair[0], positions = pair[1];
            const Value line = asLine(d, values);
            return {line, asLine(d, positions)};
        },
        "f32[2, 3, 8], 2\nf32[3, 9], [3], [2], [1]"),
    composite(
        "aten.adaptive_avg_pool1d.default(Tensor self, int[1] output_size) -> Tensor",
        [](Decomposition& d) -> Values {
            return isLine(d) ? asLine(d, adaptive1d(d, "aten.adaptive_avg_pool2d.default")) : Value();
        },
        "f32[2, 3, 8], 3\nf32[2, 3, 8], 1\nf32[3, 7], [2]"),
    composite(
        "aten.adaptive_max_pool1d.default(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        [](Decomposition& d) -> Values {
            if (!isLine(d)) return {Value(), Value()};
            const Value self = d.in(0);
            if (self.size(-1) == SymInt(0) || (self.rank() == 3 && self.size(1) == SymInt(0)))
                return refuse(d, "only the batch of " + self.type().text() + " may be empty");
            const Value pair = adaptive1d(d, "aten.adaptive_max_pool2d.default"), values = pair[0], positions = pair[1];
            const Value where = asLine(d, positions);
            return {asLine(d, values), where};
        },
        "f32[2, 3, 8], 3\nf32[3, 7], [2]"),
    composite(
        "aten.adaptive_avg_pool3d.default(Tensor self, SymInt[3] output_size) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value self = d.in(0);
            const auto asked = d.sizes("output_size");
            if ((self.rank() == 4 || self.rank() == 5) && asked && *asked == SymDims{SymInt(1), SymInt(1), SymInt(1)})
                return d.call("aten.mean.dim", {self, Argument(Dims{-1, -2, -3}), true});
            auto type = inferParts(d, 3);
            if (!type) {
                d.builder().fail(type.error());
                return Value();
            }
            return d.call("aten._adaptive_avg_pool3d.default", {d.arg(0), Argument(*asked)});
        },
        "f32[1, 2, 4, 6, 4], [2, 3, 2]\nf32[1, 2, 4, 6, 4], [1, 1, 1]\nf32[2, 5, 4, 3], [2, 2, 2]"),
    {.schema = "aten._adaptive_avg_pool3d.default(Tensor self, SymInt[3] output_size) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(TensorType type, inferParts(c, 3));
         if (!isFloating(type.dtype))
             return c.fail("needs a floating-point tensor, not " + std::string(info(type.dtype).torchName));
         return ValueType(std::move(type));
     },
     .eval = evalAverage3d,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten._adaptive_avg_pool3d_backward.default", {d.dy(), d.in(0)});
         },
     .lower = [](LowerContext& c) { return lowerEqualParts(c, 3); },
     .samples = "f32[1, 2, 4, 6, 4], [2, 3, 2]\nf64[2, 5, 4, 3], [2, 2, 2]"},
    {.schema = "aten._adaptive_avg_pool3d_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 3); },
     .eval = evalAverage3dBackward,
     .samples = "f32[1, 2, 2, 3, 2], f32[1, 2, 4, 6, 4]\nf64[2, 2, 2, 2], f64[2, 5, 4, 3]"},
    // Maxima with their positions in the plane; the first of equals, and NaN before all.
    {.schema = "aten.adaptive_max_pool2d.default(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferLargest(c, 2); },
     .eval = [](const EvalContext& c) { return evalLargest(c, 2); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeLargest(d, 2); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.adaptive_max_pool2d_backward.default", {d.dy(0), d.in(0), d.out(1)});
         },
     .samples = kLargest2d},
    {.schema = "aten.adaptive_max_pool2d_backward.default(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 2); },
     .eval = [](const EvalContext& c) { return evalLargestBackward(c, 2); },
     .samples = "f32[1, 2, 3, 4], f32[1, 2, 8, 6], i64[1, 2, 3, 4]<48\nf64[2, 2, 2], f64[2, 7, 5], i64[2, 2, 2]<35"},
    {.schema = "aten.adaptive_max_pool3d.default(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferLargest(c, 3); },
     .eval = [](const EvalContext& c) { return evalLargest(c, 3); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Values parts = decomposeLargest(d, 3);
         if (!parts.handled() || !has(d.release(), ReleaseChange::StridesOfMaxima)) return parts;
         const auto rowMajor = [&](const Value& part) {
             return d.call("prims.inductor_force_stride_order.default",
                           {part, Argument(contiguousStrides(part.sizes()))});
         };
         const Value values = rowMajor(parts.values()[0]);
         return {values, rowMajor(parts.values()[1])};
     },
     .decomposedIn = sinceRelease(Release::V2_13),
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.adaptive_max_pool3d_backward.default", {d.dy(0), d.in(0), d.out(1)});
         },
     .samples = "f32[1, 2, 4, 6, 4]!, [2, 3, 2]\nf32[2, 4, 6, 4]!, [1, 1, 1]\nf64[2, 5, 4, 3]!, [2, 2, 2]"},
    {.schema = "aten.adaptive_max_pool3d_backward.default(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
     .infer = [](const InferContext& c) { return pooledGradientType(c, 3); },
     .eval = [](const EvalContext& c) { return evalLargestBackward(c, 3); },
     .samples = "f32[1, 2, 2, 3, 2], f32[1, 2, 4, 6, 4], i64[1, 2, 2, 3, 2]<96"},
};

}  // namespace

std::span<const OpDef> adaptivePoolOps() { return kPoolAdaptiveOps; }

}  // namespace cutaway
