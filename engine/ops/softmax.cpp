// Softmax and its kin.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels_reduce.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Result<ValueType> softmaxType(const InferContext& c, std::optional<DType> dtype) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    const DType result = dtype.value_or(self.dtype);
    if (!isFloating(result)) return c.fail("needs a floating-point tensor, not " + std::string(info(result).torchName));
    if (byteSize(result) < 2) return c.fail("has no kernel for " + std::string(info(result).torchName));
    return ValueType(TensorType::contiguous(result, self.sizes, self.device));
}
Result<ValueType> inferSoftmax(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (c.flag("half_to_float") && !isHalf(self.dtype))
        return c.fail("half_to_float needs a float16 or bfloat16 tensor");
    return softmaxType(c, c.flag("half_to_float") ? std::optional(DType::F32) : std::nullopt);
}

/// exp(x - max) / sum or its logarithm, one pass per group; computed in double.
EvalResult normalizeExp(const EvalContext& c, bool logarithm, bool safe) {
    const Tensor self = c.in(size_t{0});
    const Dims dims = self.rank() == 0 ? Dims{} : Dims{c.dimOf("dim", self.rank())};
    Tensor out = c.result();
    if (out.numel() == 0) return out;
    // Results are written group by group along the same dim, so gather offsets of the groups' starts first.
    const int64_t length = dims.empty() ? 1 : self.size(dims[0]), step = dims.empty() ? 1 : out.stride(dims[0]);
    std::vector<double> group(static_cast<size_t>(length));
    forEachReduced<double>(self, dims, [&](int64_t position, const ReducedElements<double>& elements) {
        size_t at = 0;
        double largest = -std::numeric_limits<double>::infinity(), total = 0;
        elements.forEachRun([&](const double* run, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
                largest = std::isnan(largest) || run[i] < largest ? largest : run[i];
                group[at++] = run[i];
            }
        });
        for (double x : group) total += std::exp(x - largest);
        const bool hidden = safe && largest == -std::numeric_limits<double>::infinity();
        for (double& x : group)
            x = hidden ? 0 : logarithm ? x - largest - std::log(total) : std::exp(x - largest) / total;
        // Row-major result: position counts the kept dims, those before the dim and those after.
        const int64_t offset = position / step * step * length + position % step;
        storeElements(out.dtype(), static_cast<std::byte*>(out.data()) + offset * byteSize(out.dtype()), step, length,
                      group.data());
    });
    return out;
}

/// Half precision is computed in float.
Value inComputeDType(const Value& x) { return isHalf(x.dtype()) ? convert(x, DType::F32) : x; }
/// The operand packed, in the dtype that softmax computes in.
Value prepared(Decomposition& d) {
    Value x = d.in(size_t{0});
    if (!x.type().isContiguous()) x = d.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    return inComputeDType(x);
}
Value finished(Decomposition& d, const Value& y) { return convert(y, d.out().dtype); }
Value shifted(Decomposition& d, const Value& x) {
    if (x.rank() > 0 && x.size(d.integerOr("dim", 0)) == SymInt(0)) return x;
    return x - d.call("aten.amax.default", {x, Argument(std::vector<int64_t>{d.integerOr("dim", 0)}), true});
}
Values decomposeSoftmax(Decomposition& d) {
    const Value x = prepared(d);
    const Value e = unary("aten.exp.default", shifted(d, x));
    return finished(d, e / sum(e, {d.integerOr("dim", 0)}, true));
}
Values decomposeLogSoftmax(Decomposition& d) {
    const Value s = shifted(d, prepared(d));
    const Value total = sum(unary("aten.exp.default", s), {d.integerOr("dim", 0)}, true);
    return finished(d, s - unary("aten.log.default", total));
}

/// softmax.int and log_softmax.int: a cast if asked for, then the kernel op.
Values withCast(Decomposition& d, std::string_view op) {
    const auto dtype = d.dtype("dtype");
    const Value self = d.in(size_t{0});
    if (!dtype || *dtype == self.dtype()) return d.call(op, {self, d.arg(1), false});
    if (isHalf(self.dtype()) && *dtype == DType::F32 && self.type().device.type == DeviceType::Cuda)
        return d.call(op, {self, d.arg(1), true});
    return d.call(op, {d.call("aten._to_copy.default", {self}, {{"dtype", *dtype}}), d.arg(1), false});
}

Result<ValueType> inferSoftmaxBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType output, c.tensor(1));
    CT_TRY_VOID(c.dim("dim", output.rank()));
    if (!(gradient.sizes == output.sizes))
        return c.fail("gradient " + gradient.text() + " and output " + output.text() + " differ in shape");
    return ValueType(
        TensorType::contiguous(c.dtype("input_dtype").value_or(output.dtype), output.sizes, output.device));
}
void deriveSoftmax(Derivation& d, std::string_view op) {
    d.input(0) = d.call(op, {d.dy(), d.out(), d.arg("dim"), d.in(size_t{0}).dtype()});
}

constexpr std::string_view kSoftmaxSamples = R"(
f32[2, 3, 4], -1, False
f32[2, 3, 4], 1, False
f32[3, 2, 4][4, 12, 1], -1, False
bf16[2, 3], 1, False
f64[5], 0, False
f32[], 0, False
f32[0, 3], 1, False
)";
constexpr std::string_view kSoftmaxBackwardSamples = R"(
f32[2, 3, 4], f32[2, 3, 4]<1, -1, torch.float32
f64[2, 3], f64[2, 3]<1, 0, torch.float64
)";

constexpr OpDef kSoftmaxOps[] = {
    // exp(x) / sum(exp(x)) along a dim, shifted by the maximum. A group of only -inf gives NaN.
    {.schema = "aten._softmax.default(Tensor self, int dim, bool half_to_float) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSoftmax,
     .eval = [](const EvalContext& c) { return normalizeExp(c, false, false); },
     .expand = Expand::Decompose,
     .decompose = decomposeSoftmax,
     .derive = [](Derivation& d) { deriveSoftmax(d, "aten._softmax_backward_data.default"); },
     .samples = kSoftmaxSamples},
    {.schema = "aten._log_softmax.default(Tensor self, int dim, bool half_to_float) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSoftmax,
     .eval = [](const EvalContext& c) { return normalizeExp(c, true, false); },
     .expand = Expand::Decompose,
     .decompose = decomposeLogSoftmax,
     .derive = [](Derivation& d) { deriveSoftmax(d, "aten._log_softmax_backward_data.default"); },
     .samples = kSoftmaxSamples},
    // Softmax whose groups of only -inf give zeros: attention rows that may look at nothing.
    {.schema = "aten._safe_softmax.default(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) { return softmaxType(c, c.dtype("dtype")); },
     .eval = [](const EvalContext& c) { return normalizeExp(c, false, true); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value self = d.in(size_t{0});
         const Value soft = d.call("aten.softmax.int", {self, d.arg(1), d.arg(2)});
         const Value hidden = d.call("aten.eq.Scalar", {self, -std::numeric_limits<double>::infinity()});
         const Value rows = d.call("aten.all.dim", {hidden, d.arg(1), true});
         const Value zeros = unary("aten.zeros_like.default", soft);
         return where(rows, zeros, soft);
     },
     .derive = [](Derivation& d) { deriveSoftmax(d, "aten._softmax_backward_data.default"); },
     .samples = "f32[2, 3, 4], -1\nbf16[2, 3], 1\nf64[2, 3], 0"},
    // The largest element of each group, and the sum of exp(x - it): what a softmax needs, in one walk over the data.
    {.schema = "prims.prepare_softmax_online.default(Tensor x, int dim) -> (Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType x, c.tensor(size_t{0}));
         if (isComplex(x.dtype)) return c.fail("complex numbers have no largest one");
         CT_TRY(const int64_t dim, c.dim("dim", x.rank()));
         const int64_t dims[] = {dim};
         const TensorType most =
             TensorType::contiguous(x.dtype, x.rank() > 0 ? reducedSizes(x.sizes, dims, true) : SymDims(), x.device);
         TensorType total = most;
         if (!isFloating(x.dtype)) total.dtype = DType::F32;  // exponentials of integers
         return ValueType(TupleType{most, total});
     },
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const std::vector<int64_t> dims{d.integerOr("dim", 0)};
         const Value most = d.call("aten.amax.default", {x, Argument(dims), true});
         return {most, sum(unary("aten.exp.default", x - most), dims, true)};
     },
     .lower = [](LowerContext& c) -> Expr {
         const TensorType x = c.in(size_t{0});
         if (x.rank() == 0) return Expr();
         const auto dim = static_cast<size_t>(c.dimOf("dim", x.rank()));
         const auto element = [&](const std::vector<Expr>& r) {
             std::vector<Expr> at = c.index();
             at[dim] = r[0];
             return c.loadAt(0, at);
         };
         const Expr most = c.reduce(ReduceKind::Max, {x.sizes[dim]}, element);
         if (c.resultNumber() == 0) return most;
         return c.reduce(ReduceKind::Sum, {x.sizes[dim]}, [&](const std::vector<Expr>& r) {
             return call1("exp", Expr::cast(element(r) - most, computeTypeOf(c.out(1).dtype)));
         });
     },
     .samples = "f32[2, 3, 4], -1\nf32[2, 3, 4], 1\nf64[5], 0\nf32[3, 4][1, 3], -1"},
    {.schema = "aten.softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCast(d, "aten._softmax.default"); },
     .samples = "f32[2, 3], -1\nbf16[2, 3], 1, torch.float32\ni64[2, 3], 1, torch.float32"},
    {.schema = "aten.log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCast(d, "aten._log_softmax.default"); },
     .samples = "f32[2, 3], -1\nbf16[2, 3], 1, torch.float32"},
    // g*y - y*sum(g*y), the last step as one fused multiply-add.
    {.schema =
         "aten._softmax_backward_data.default(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSoftmaxBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value gradient = inComputeDType(d.in(size_t{0})), y = inComputeDType(d.in(1));
         const Value product = gradient * y;
         const Value total = sum(product, {d.integerOr("dim", 0)}, true);
         Value result = d.call("prims.fma.default", {-y, total, product});
         if (!result.type().isContiguous())
             result = d.call("aten.clone.default", {result}, {{"memory_format", MemoryFormat::Contiguous}});
         return convert(result, d.out().dtype);
     },
     .samples = kSoftmaxBackwardSamples},
    {.schema =
         "aten._log_softmax_backward_data.default(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSoftmaxBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value gradient = inComputeDType(d.in(size_t{0}));
         const Value soft = unary("aten.exp.default", inComputeDType(d.in(1)));
         const Value total = sum(gradient, {d.integerOr("dim", 0)}, true);
         return convert(gradient - soft * total, d.out().dtype);
     },
     .samples = kSoftmaxBackwardSamples},
};

}  // namespace

std::span<const OpDef> softmaxOps() { return kSoftmaxOps; }

}  // namespace cutaway
