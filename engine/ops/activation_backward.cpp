// Gradients of activation functions: ops of their own, so that the forward op can be differentiated before it is
// expanded. All but those of the shrinking functions expand; their kernels are their expansions.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr std::string_view kGradientPairs = R"(
f32[2, 3], f32[2, 3]
f64[2, 3][1, 2], f64[2, 3]
bf16[5], bf16[5]
f32[], f32[]
)";
constexpr std::string_view kComplexPairs = R"(
f32[2, 3], f32[2, 3]
f64[2, 3][1, 2], f64[2, 3]
bf16[5], bf16[5]
f32[], f32[]
c64[2, 3], c64[2, 3]
)";

Scalar gradientNumber(const Decomposition& d, std::string_view param) {
    return d.scalar(param).value_or(Scalar(int64_t{0}));
}
double gradientReal(const Decomposition& d, std::string_view param) { return toDouble(gradientNumber(d, param)); }

Result<ValueType> inferGradient(const InferContext& c) {
    CT_TRY(const Operand gradient, c.operand(0));
    CT_TRY(const Operand other, c.operand(1));
    const Operand operands[] = {gradient, other};
    if (!isFloating(resultType(operands)))
        return c.fail("needs a floating-point gradient, not " +
                      std::string(info(c.tensor(size_t{0})->dtype).torchName));
    return inferBroadcast(c);
}
/// The same for functions that complex numbers have, too.
Result<ValueType> inferGradientOrComplex(const InferContext& c) {
    CT_TRY(const Operand gradient, c.operand(0));
    CT_TRY(const Operand other, c.operand(1));
    const Operand operands[] = {gradient, other};
    return isComplex(resultType(operands)) ? inferBroadcast(c) : inferGradient(c);
}
/// Of (grad_output, self, numbers...): numbers take no part in promotion.
Result<ValueType> inferGradientOfTwo(const InferContext& c) {
    std::vector<Operand> operands;
    for (size_t i = 0; i < c.count(); ++i)
        if (c.op().schema()->params[i].kind == ParamKind::Tensor) {
            CT_TRY(Operand one, c.operand(i));
            operands.push_back(std::move(one));
        }
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
/// The same, where self comes before the gradient in deciding on the layout.
Result<ValueType> inferGradientOfSelf(const InferContext& c) {
    CT_TRY(const Operand gradient, c.operand(0));
    CT_TRY(const Operand self, c.operand(1));
    const Operand operands[] = {self, gradient};
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
/// tanh's argument in the approximation of gelu, and x squared.
struct GeluInner {
    Value square, tanh;
};
GeluInner geluInner(const Value& x) {
    const Value square = x * x;
    const Value inner = (x + square * x * 0.044715) * 0.7978845608028654;
    return {square, unary("aten.tanh.default", inner)};
}
Values decomposeGeluBackward(Decomposition& d) {
    const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
    if (d.text("approximate") != "tanh") {
        const Value cdf = (unary("aten.erf.default", x * 0.7071067811865476) + 1) * 0.5;
        const Value pdf = unary("aten.exp.default", x * x * -0.5) * 0.3989422804014327;
        return fromOpmath(d, g * (cdf + x * pdf));
    }
    const auto [square, t] = geluInner(x);
    const Value left = x * 0.5;
    const Value first = (t + 1) * 0.5;
    const Value slope = subtractFrom(int64_t{1}, t * t);
    const Value inner = (square * 0.134145 + 1) * 0.7978845608028654;
    return fromOpmath(d, g * (first + left * slope * inner));
}
Value softplusPlain(const Value& x) {
    const Value soft = unary("aten.log1p.default", unary("aten.exp.default", x));
    return where(compareScalar("gt", x, int64_t{20}), x, soft);
}
Value zeroUnless(Decomposition& d, const Value& condition, const Value& value) {
    return where(condition, value, scalarTensor(d, 0.0, value));
}

// Of hardshrink and softshrink: nothing flows within lambd of 0.
EvalResult evalShrinkBackward(const EvalContext& c) {
    const double limit = toDouble(c.number("lambd"));
    return zipFloat(c, [limit](auto g, auto x) { return x >= -limit && x <= limit ? decltype(g)(0) : g; });
}
Expr lowerShrinkBackward(LowerContext& c) {
    const Expr g = c.load(0), x = c.load(1);
    if (!isFloating(x->dtype)) return Expr();  // the kernel compares in float32
    const Expr limit = c.numberAt("lambd", x->dtype);
    const Expr inside = compare(ExprKind::Ge, x, -limit) && compare(ExprKind::Le, x, limit);
    return Expr::make(ExprKind::Where, {inside, constantLike(g, 0), g}, g->dtype);
}
void deriveShrinkBackward(Derivation& d) { d.input(0) = d.call(d.op().name(), {d.dy(), d.arg(1), d.arg("lambd")}); }
constexpr std::string_view kShrinkSamples =
    "f32[2, 3], f32[2, 3], 0.5\nf64[2, 3][1, 2], f64[2, 3], 1.5\nbf16[5], bf16[5], 0.5\nf32[], f32[], 0.25\nf32[0], f32[0], 1";

constexpr OpDef kActivationBackwardOps[] = {
    // The gradient where the tensor lies above the threshold.
    {.schema = "aten.threshold_backward.default(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
     .tags = Tag::Pointwise,
     // Here the tensor comes before the gradient in deciding on the layout.
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const Operand gradient, c.operand(0));
         CT_TRY(const Operand self, c.operand(1));
         const Operand operands[] = {self, gradient};
         CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
         return ValueType(std::move(type));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = d.in(size_t{0});
         const Value low = compareScalar("le", d.in(1), gradientNumber(d, "threshold"));
         return where(low, scalarTensor(d, int64_t{0}, g), g);
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.threshold_backward.default", {d.dy(), d.arg(1), d.arg(2)});
         },
     .samples = "f32[2, 3], f32[2, 3], 0\nf64[2, 3][1, 2], f64[2, 3], 0.5\nbf16[5], bf16[5], 0"},
    {.schema = "aten.tanh_backward.default(Tensor grad_output, Tensor output) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOrComplex,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), y = opmathIn(d, 1);
         return fromOpmath(d, g * conjugated(subtractFrom(int64_t{1}, y * y)));
     },
     .samples = kComplexPairs},
    {.schema = "aten.sigmoid_backward.default(Tensor grad_output, Tensor output) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOrComplex,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), y = opmathIn(d, 1);
         return fromOpmath(d, g * conjugated(y * subtractFrom(int64_t{1}, y)));
     },
     .samples = kComplexPairs},
    {.schema = "aten.gelu_backward.default(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeGeluBackward,
     .samples = "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], approximate = 'tanh'\nbf16[4], bf16[4]\nf64[3], f64[3]"},
    {.schema = "aten.silu_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOrComplex,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value s = has(d.release(), ReleaseChange::GradientOfSilu)
                             ? unary("aten.sigmoid.default", x)
                             : unary("aten.reciprocal.default", unary("aten.exp.default", -x) + 1) * 1;
         const Value left = g * s;
         return fromOpmath(d, left * (x * subtractFrom(int64_t{1}, s) + 1));
     },
     .samples = kGradientPairs},
    {.schema = "aten.mish_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value t = unary("aten.tanh.default", softplusPlain(x));
         const Value xs = x * unary("aten.sigmoid.default", x);
         const Value slope = subtractFrom(int64_t{1}, t * t);
         return fromOpmath(d, g * (t + xs * slope));
     },
     .samples = kGradientPairs},
    {.schema = "aten.hardswish_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value low = compareScalar("le", x, int64_t{-3}), inside = compareScalar("lt", x, int64_t{3});
         const Value sloped = g * (x / 3 + 0.5);
         const Value upper = where(inside, sloped, g);
         return fromOpmath(d, where(low, scalarTensor(d, 0.0, g), upper));
     },
     .samples = kGradientPairs},
    {.schema = "aten.hardsigmoid_backward.default(Tensor grad_output, Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value above = compareScalar("gt", x, -3.0), below = compareScalar("lt", x, 3.0);
         const Value inside = d.call("aten.bitwise_and.Tensor", {above, below});
         return fromOpmath(d, zeroUnless(d, inside, g * (1.0 / 6)));
     },
     .samples = kGradientPairs},
    {.schema =
         "aten.hardtanh_backward.default(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const bool wide = has(d.release(), ReleaseChange::BoundsInOpmath);
         const Value g = wide ? opmathIn(d, 0) : d.in(size_t{0}), x = wide ? opmathIn(d, 1) : d.in(1);
         const Value low = compareScalar("le", x, gradientNumber(d, "min_val")),
                     high = compareScalar("ge", x, gradientNumber(d, "max_val"));
         const Value outside = d.call("aten.bitwise_or.Tensor", {low, high});
         return convert(where(outside, scalarTensor(d, 0.0, g), g), d.out().dtype);
     },
     .samples = "f32[2, 3], f32[2, 3], -1, 1\nbf16[5], bf16[5], 0, 2.5"},
    {.schema =
         "aten.leaky_relu_backward.default(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfSelf,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value positive = compareScalar("gt", x, int64_t{0});
         return fromOpmath(d, where(positive, g, g * gradientNumber(d, "negative_slope")));
     },
     .samples = "f32[2, 3], f32[2, 3], 0.01, False\nbf16[5], bf16[5], 0.2, False"},
    // `self_or_result` is the input, or with is_result the output, of elu.
    {.schema =
         "aten.elu_backward.default(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 5);
         const Scalar scale = gradientNumber(d, "scale"), inputScale = gradientNumber(d, "input_scale");
         const double product = gradientReal(d, "alpha") * gradientReal(d, "scale");
         const bool whole = !isFloatingScalar(gradientNumber(d, "alpha")) && !isFloatingScalar(scale);
         const Scalar negative = whole ? Scalar(static_cast<int64_t>(product)) : Scalar(product);
         const Value low = compareScalar("le", x, int64_t{0});
         Value below = g * inputScale;
         if (d.flag("is_result")) below = below * (x + negative);
         else {
             const Value scaled = below * negative;
             below = scaled * unary("aten.exp.default", x * inputScale);
         }
         return fromOpmath(d, where(low, below, g * scale));
     },
     .samples =
         "f32[2, 3], 1, 1, 1, False, f32[2, 3]\nf32[2, 3], 1.5, 2, 0.5, True, f32[2, 3]\nbf16[4], 1, 1, 1, False, bf16[4]"},
    {.schema =
         "aten.softplus_backward.default(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value z = unary("aten.exp.default", x * gradientNumber(d, "beta"));
         const Value beyond = compareScalar("gt", x * gradientNumber(d, "beta"), gradientNumber(d, "threshold"));
         const Value product = g * z;
         return fromOpmath(d, where(beyond, g, product / (z + 1.0)));
     },
     .samples = "f32[2, 3], f32[2, 3], 1, 20\nbf16[5], bf16[5], 2, 3"},
    {.schema = "aten.log_sigmoid_backward.default(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const Operand g, c.operand(0));
         CT_TRY(const Operand x, c.operand(1));
         const Operand operands[] = {g, x};
         CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
         return ValueType(std::move(type));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const bool saved =
             d.in(2).type().device.type == DeviceType::Cpu && has(d.release(), ReleaseChange::SavedLogSigmoid);
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const Value kept = saved ? opmathIn(d, 2) : Value();
         const Value negative = compareScalar("lt", x, int64_t{0});
         auto pick = [&](int64_t yes, int64_t no) {
             const Value second = scalarTensor(d.builder(), no, DType::I64, x.type().device);
             return where(negative, scalarTensor(d.builder(), yes, DType::I64, x.type().device), second);
         };
         const Value most = pick(1, 0), sign = pick(1, -1);
         const Value z = saved ? kept : unary("aten.exp.default", -unary("aten.abs.default", x));
         return fromOpmath(d, g * (most - sign * (z / (z + 1))));
     },
     .samples = "f32[2, 3], f32[2, 3], f32[2, 3]\nbf16[4], bf16[4], bf16[4]"},
    {.schema =
         "aten._prelu_kernel_backward.default(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
     .tags = Tag::Pointwise,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = d.in(size_t{0}), x = d.in(1), w = d.in(2);
         const Value above = compareScalar("gt", x, int64_t{0});
         const Value dx = where(above, g, w * g);
         const Value positive = compareScalar("gt", x, int64_t{0});
         const Value product = x * g;
         return {dx, where(positive, scalarTensor(d, 0.0, g), product)};
     },
     .samples = "f32[2, 3], f32[2, 3], f32[1, 3]"},
    {.schema = "aten.glu_backward.default(Tensor grad_output, Tensor self, int dim) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(1));
         CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
         CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
         SymDims half = self.sizes;
         if (!half.empty()) half[static_cast<size_t>(dim)] = floorDiv(half[static_cast<size_t>(dim)], 2);
         const SymDims both[] = {gradient.sizes, half};
         if (const auto sizes = broadcastSizes(both); !sizes || !(*sizes == half))
             return c.fail("the gradient " + gradient.text() + " is not half of " + self.text() + " along dim " +
                           std::to_string(dim));
         if (promote(gradient.dtype, self.dtype) != self.dtype)
             return c.fail("the gradient " + gradient.text() + " does not fit the dtype of " + self.text());
         return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const int64_t dim = d.dimOf("dim", x.rank());
         const SymInt half = floorDiv(x.size(dim), 2);
         const Value a = d.call("aten.slice.Tensor", {x, dim, 0, half}),
                     b = d.call("aten.slice.Tensor", {x, dim, half, x.size(dim)});
         const Value s = unary("aten.sigmoid.default", b);
         const Value second = subtractFrom(1.0, s) * s * a * g;
         return fromOpmath(d, d.call("aten.cat.default", {Argument(std::vector<Argument>{s * g, second}), dim}));
     },
     .samples = "f32[2, 2], f32[2, 4], -1\nf64[2, 3], f64[4, 3], 0\nbf16[2, 2], bf16[2, 4], -1"},
    {.schema = "aten.native_dropout_backward.default(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
         CT_TRY(const TensorType mask, c.tensor(1));
         const SymDims shapes[] = {gradient.sizes, mask.sizes};
         auto sizes = broadcastSizes(shapes);
         if (!sizes) return c.fail(sizes.error().message);
         const bool real = isFloating(gradient.dtype) || isComplex(gradient.dtype);  // the scale is a real number
         return ValueType(TensorType::contiguous(real ? gradient.dtype : DType::F32, *sizes, gradient.device));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = d.in(size_t{0});
         const Value kept = convert(d.in(1), g.dtype()) * d.real("scale");
         return d.call("aten.clone.default", {g * kept}, {{"memory_format", MemoryFormat::Contiguous}});
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.native_dropout_backward.default", {d.dy(), d.in(1), d.arg(2)});
         },
     .samples = "f32[2, 3], b8[2, 3], 2.0\nbf16[4], b8[4], 1.5"},
    // NaN outside [0, 1] when eps is None, 0 outside [eps, 1 - eps] otherwise.
    {.schema = "aten.logit_backward.default(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1);
         const double low = d.has("eps") ? d.real("eps") : 0.0;
         const Value above = compareScalar("ge", x, low), below = compareScalar("le", x, 1.0 - low);
         const Value inside = d.call("aten.logical_and.default", {above, below});
         const Value y = g / (x * subtractFrom(1.0, x));
         const Value outside =
             d.has("eps") ? scalarTensor(d, 0.0, y)
                          : full(d.builder(), {}, std::numeric_limits<double>::quiet_NaN(), y.dtype(), y.type().device);
         return fromOpmath(d, where(inside, y, outside));
     },
     .samples = "f32[2, 3], f32[2, 3]<1, 0.1\nf32[2, 3], f32[2, 3]<1"},
    {.schema = "aten.hardshrink_backward.default(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalShrinkBackward,
     .derive = deriveShrinkBackward,
     .lower = lowerShrinkBackward,
     .samples = kShrinkSamples},
    {.schema = "aten.softshrink_backward.default(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGradientOfTwo,
     .eval = evalShrinkBackward,
     .derive = deriveShrinkBackward,
     .lower = lowerShrinkBackward,
     .samples = kShrinkSamples},
};

}  // namespace

std::span<const OpDef> activationBackwardOps() { return kActivationBackwardOps; }

}  // namespace cutaway
