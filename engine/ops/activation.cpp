// Activation functions.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr Tag kActivationTags = Tag::Pointwise | Tag::Inplace;

constexpr std::string_view kActivationSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
f32[0, 3]
f32[2, 3, 2, 2][12, 1, 6, 3]
)";

Result<ValueType> inferGelu(const InferContext& c) {
    const std::string mode = c.text("approximate");
    if (mode != "none" && mode != "tanh") return c.fail("approximate is 'none' or 'tanh', not '" + mode + "'");
    return inferFloatLikeFirst(c);
}
Value geluOf(const Value& x, bool tanh) {
    if (!tanh) {
        const Value half = x * 0.5;
        return half * (unary("aten.erf.default", x * 0.7071067811865476) + 1);
    }
    const Value inner = (x + x * x * x * 0.044715) * 0.7978845608028654;
    const Value half = x * 0.5;
    return half * (unary("aten.tanh.default", inner) + 1);
}

/// A literal number argument; the shape rule or the schema has seen to it that there is one.
Scalar activationNumber(const Decomposition& d, std::string_view param) {
    return d.scalar(param).value_or(Scalar(int64_t{0}));
}
double activationReal(const Decomposition& d, std::string_view param) { return toDouble(activationNumber(d, param)); }
/// The derivative is an op of its own over (gradient, input, the op's numbers).
void deriveBy(Derivation& d, std::string_view op, std::vector<Argument> rest = {}) {
    std::vector<Argument> args = {d.dy(), d.in(size_t{0})};
    for (Argument& one : rest) args.push_back(std::move(one));
    d.input(0) = d.call(op, std::move(args));
}
Value clampBetween(const Value& x, const Scalar& low, const Scalar& high) {
    if (!x) return x;
    return x.builder().call("aten.clamp_max.default", {x.builder().call("aten.clamp_min.default", {x, low}), high});
}
/// log(1 + exp(beta x)) / beta, and x itself beyond the threshold.
Value softplusOf(const Value& x, const Scalar& beta, const Scalar& threshold) {
    const bool plain = toDouble(beta) == 1;
    const Value scaled = plain ? x : x * beta;
    const Value soft = unary("aten.log1p.default", unary("aten.exp.default", scaled));
    const Value divided = plain ? soft : soft / beta;
    return where(compareScalar("gt", scaled, threshold), x, divided);
}

Result<ValueType> inferPrelu(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor(1));
    if (self.dtype != weight.dtype) return c.fail("input and weight are of different dtypes");
    return inferBroadcast(c);
}
Result<ValueType> inferGlu(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("needs at least one dim");
    if (!isFloating(self.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(self.dtype).torchName));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    SymDims sizes = self.sizes;
    SymInt& size = sizes[static_cast<size_t>(dim)];
    if (leavesRemainder(size, 2))
        return c.fail("dim " + std::to_string(dim) + " of size " + size.text() + " does not split in halves");
    size = floorDiv(size, 2);
    // Elementwise over the halves, which have the operand's strides.
    Operand half{self, false};
    half.type.sizes = sizes;
    TensorType type = TensorType::contiguous(self.dtype, sizes, self.device);
    type.strides = elementwiseStrides(sizes, std::span(&half, 1));
    return ValueType(std::move(type));
}
EvalResult evalGlu(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const int64_t dim = c.dimOf("dim", self.rank());
    const Dims sizes = c.resultSizes();
    const Tensor gate =
        self.view(sizes, self.strides(), self.offset() + sizes[static_cast<size_t>(dim)] * self.stride(dim));
    Tensor out = c.result();
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        elementwise<T, 2>(out, {self.view(sizes, self.strides(), self.offset()), gate},
                          [](T a, T b) { return a / (1 + std::exp(-b)); });
    });
    return out;
}

Result<ValueType> inferSoftshrink(const InferContext& c) {
    CT_TRY(ValueType type, inferFloatLikeFirst(c));
    const double lambda = c.real("lambd", 0.5);
    if (!(lambda >= 0 && lambda <= largestOf(type.tensor()->dtype)))
        return c.fail("'lambd' must be a number from 0 on that the dtype holds");
    return type;
}

constexpr OpDef kActivationOps[] = {
    // x * Phi(x), exactly or by the tanh approximation.
    {.schema = "aten.gelu.default(Tensor self, *, str approximate='none') -> Tensor",
     .tags = kActivationTags,
     .infer = inferGelu,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (c.text("approximate") == "tanh")
             return floatMap(c, [](auto x) {
                 return x * decltype(x)(0.5) *
                        (1 + std::tanh(decltype(x)(0.7978845608028654) * (x + decltype(x)(0.044715) * x * x * x)));
             });
         return floatMap(
             c, [](auto x) { return x * decltype(x)(0.5) * (1 + std::erf(x * decltype(x)(0.7071067811865476))); });
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return fromOpmath(d, geluOf(toOpmath(d.in(size_t{0})), d.text("approximate") == "tanh"));
     },
     .derive =
         [](Derivation& d) {
             NamedArguments keywords;
             if (d.text("approximate") != "none") keywords = {{"approximate", d.text("approximate")}};
             d.input(0) = d.call("aten.gelu_backward.default", {d.dy(), d.in(size_t{0})}, std::move(keywords));
         },
     .samples = R"(
f32[2, 3]
f32[2, 3], approximate = 'tanh'
f64[2, 3][1, 2]
bf16[5]
f16[], approximate = 'tanh'
f32[0, 3]
)"},
    // x * sigmoid(x), as x / (1 + exp(-x)).
    {.schema = "aten.silu.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatOrComplexLikeFirst,
     .eval =
         [](const EvalContext& c) { return complexMap(c, [](auto x) { return x / (decltype(x)(1) + std::exp(-x)); }); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         return fromOpmath(d, x / (unary("aten.exp.default", -x) + 1));
     },
     .derive = [](Derivation& d) { deriveBy(d, "aten.silu_backward.default"); },
     .samples = kActivationSamples},
    // x * tanh(softplus(x)).
    {.schema = "aten.mish.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         return fromOpmath(d, x * unary("aten.tanh.default", softplusOf(x, int64_t{1}, int64_t{20})));
     },
     .derive = [](Derivation& d) { deriveBy(d, "aten.mish_backward.default"); },
     .samples = kActivationSamples},
    // x * clamp(x + 3, 0, 6) / 6.
    {.schema = "aten.hardswish.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         return fromOpmath(d, x * clampBetween(x + 3, int64_t{0}, int64_t{6}) / 6);
     },
     .derive = [](Derivation& d) { deriveBy(d, "aten.hardswish_backward.default"); },
     .samples = kActivationSamples},
    {.schema = "aten.hardsigmoid.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return fromOpmath(d, clampBetween(opmathIn(d, 0) + 3, int64_t{0}, int64_t{6}) / 6);
     },
     .derive = [](Derivation& d) { deriveBy(d, "aten.hardsigmoid_backward.default"); },
     .samples = kActivationSamples},
    {.schema = "aten.hardtanh.default(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
     .tags = kActivationTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         // Limits are cut to whole numbers first: -0.7 is 0.
         if (self.dtype == DType::U8 && (c.real("min_val") <= -1 || c.real("max_val") <= -1))
             return c.fail("negative limits for an unsigned tensor");
         return inferLikeFirst(c);
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const auto limit = [&](std::string_view param) {
             const Scalar number = activationNumber(d, param);
             return isIntegral(x.dtype(), true) ? Scalar(toInt(number)) : number;
         };
         return fromOpmath(d, clampBetween(x, limit("min_val"), limit("max_val")));
     },
     .derive =
         [](Derivation& d) {
             deriveBy(d, "aten.hardtanh_backward.default",
                      {activationNumber(d, "min_val"), activationNumber(d, "max_val")});
         },
     .samples = "f32[2, 3]\nf32[2, 3], -2.0, 3.0\nbf16[4]\ni64[5], -1, 2"},
    {.schema = "aten.relu6.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.hardtanh.default", {d.in(size_t{0}), 0, 6});
     },
     .samples = kActivationSamples},
    {.schema = "aten.leaky_relu.default(Tensor self, Scalar negative_slope=0.01) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const Value positive = compareScalar("gt", x, int64_t{0});
         return fromOpmath(d, where(positive, x, x * activationNumber(d, "negative_slope")));
     },
     .derive =
         [](Derivation& d) {
             deriveBy(d, "aten.leaky_relu_backward.default", {activationNumber(d, "negative_slope"), false});
         },
     .samples = "f32[2, 3]\nf64[2, 3][1, 2], 0.2\nbf16[4]"},
    // scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below.
    {.schema = "aten.elu.default(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const double negative = activationReal(d, "alpha") * activationReal(d, "scale");
         const Value above = compareScalar("gt", x, int64_t{0});
         const Value line = x * activationReal(d, "scale");
         return fromOpmath(
             d, where(above, line, unary("aten.expm1.default", x * activationReal(d, "input_scale")) * negative));
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.elu_backward.default",
                                 {d.dy(), activationNumber(d, "alpha"), activationNumber(d, "scale"),
                                  activationNumber(d, "input_scale"), false, d.in(size_t{0})});
         },
     .samples = "f32[2, 3]\nf32[2, 3], 2.0, 1.5, 0.5\nbf16[4]\nf64[3]"},
    {.schema = "aten.celu.default(Tensor self, Scalar alpha=1.0) -> Tensor",
     .tags = kActivationTags,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const double alpha = activationReal(d, "alpha");
         const Value curve =
             alpha == 1 ? unary("aten.expm1.default", x) : unary("aten.expm1.default", x / alpha) * alpha;
         return fromOpmath(d, where(compareScalar("gt", x, int64_t{0}), x, curve));
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call(
                 "aten.elu_backward.default",
                 {d.dy(), activationNumber(d, "alpha"), 1, 1.0 / activationReal(d, "alpha"), false, d.in(size_t{0})});
         },
     .samples = "f32[2, 3]\nf32[2, 3], 1.5\nbf16[4], 0.5\nf64[3]\nf32[2, 3][1, 2]\nf32[]\nf32[0]"},
    // 0 within lambd of 0, x itself beyond; the soft form moves what is beyond towards 0 by lambd.
    {.schema = "aten.hardshrink.default(Tensor self, Scalar lambd=0.5) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const Value inside = compareScalar("le", unary("aten.abs.default", x), activationNumber(d, "lambd"));
         return where(inside, scalarTensor(d, int64_t{0}, x), x);
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.hardshrink_backward.default", {d.dy(), d.arg(0), d.arg("lambd")});
         },
     .samples = "f32[2, 3]\nf32[2, 3], 1.5\nbf16[4], 0.5\nf64[3]\nf32[2, 3][1, 2]\nf32[]\nf32[0]"},
    {.schema = "aten.softshrink.default(Tensor self, Scalar lambd=0.5) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferSoftshrink,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const Scalar number = activationNumber(d, "lambd");
         if (!isHalf(x.dtype()) || !has(d.release(), ReleaseChange::RoundedLambda)) {
             const Value outside = compareScalar("gt", unary("aten.abs.default", x), number);
             const Value moved = x - unary("aten.sign.default", x) * number;
             return where(outside, moved, x * 0);
         }
         const Value rounded = d.call("aten.scalar_tensor.default", {toDouble(number)},
                                      {{"dtype", x.dtype()}, {"device", x.type().device}, {"pin_memory", false}});
         const Value outside = d.call("aten.gt.Tensor", {unary("aten.abs.default", x), rounded});
         const Value moved = x - unary("aten.sign.default", x) * rounded;
         return where(outside, moved, x * 0);
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.softshrink_backward.default", {d.dy(), d.arg(0), d.arg("lambd")});
         },
     .samples = "f32[2, 3]\nf32[2, 3], 1.5\nbf16[4], 0.5\nf64[3]\nf32[2, 3][1, 2]\nf32[]\nf32[0]"},
    {.schema = "aten.selu.default(Tensor self) -> Tensor",
     .tags = kActivationTags,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.elu.default", {d.in(size_t{0}), 1.6732632423543772, 1.0507009873554805});
     },
     .samples = kActivationSamples},
    {.schema = "aten.softplus.default(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferFloatLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return fromOpmath(d,
                           softplusOf(opmathIn(d, 0), activationNumber(d, "beta"), activationNumber(d, "threshold")));
     },
     .derive =
         [](Derivation& d) {
             deriveBy(d, "aten.softplus_backward.default",
                      {activationNumber(d, "beta"), activationNumber(d, "threshold")});
         },
     .samples = "f32[2, 3]\nf32[2, 3], 2, 10\nbf16[4]\nf64[4], 3.0, 4.0"},
    // x above the threshold, a constant below.
    {.schema = "aten.threshold.default(Tensor self, Scalar threshold, Scalar value) -> Tensor",
     .tags = kActivationTags,
     .infer = inferLikeFirst,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const Value low = compareScalar("le", x, activationNumber(d, "threshold"));
         return fromOpmath(d, where(low, scalarTensor(d, activationNumber(d, "value"), x), x));
     },
     .derive =
         [](Derivation& d) { deriveBy(d, "aten.threshold_backward.default", {activationNumber(d, "threshold")}); },
     .samples = "f32[2, 3], 1, 2\nbf16[4], 0.5, 0.0\ni64[4], 1, 0"},
    // log(sigmoid(x)); the buffer keeps exp(-|x|) for the backward pass on the CPU.
    {.schema = "aten.log_sigmoid_forward.default(Tensor self) -> (Tensor output, Tensor buffer)",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const ValueType like, inferFloatLikeFirst(c));
         const TensorType& self = *like.tensor();
         const TensorType output = TensorType::contiguous(self.dtype, self.sizes, self.device);
         if (self.device.type == DeviceType::Cpu) return ValueType(TupleType{output, output});
         return ValueType(TupleType{output, TensorType::contiguous(self.dtype, {0}, self.device)});
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value input = d.in(size_t{0}), x = toOpmath(input);
         const Device device = input.type().device;
         const Value zero = full(d.builder(), {}, int64_t{0}, x.dtype(), device);
         const Value low = d.call("aten.minimum.default", {zero, x});
         const Value z = unary("aten.exp.default", -unary("aten.abs.default", x));
         const Value y = convert(low - unary("aten.log1p.default", z), input.dtype());
         if (device.type == DeviceType::Cpu) return {y, convert(z, input.dtype())};
         return {y, full(d.builder(), {0}, int64_t{0}, input.dtype(), device)};
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.log_sigmoid_backward.default", {d.dy(), d.in(size_t{0}), d.out(1)});
         },
     .samples = "f32[2, 3]\nbf16[4]\nf64[2, 3][1, 2]"},
    {.schema = "aten.log_sigmoid.default(Tensor self) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return unary("aten.log_sigmoid_forward.default", d.in(size_t{0}))[0];
     },
     .samples = "f32[2, 3]"},
    {.schema = "aten._prelu_kernel.default(Tensor self, Tensor weight) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferPrelu,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const Value positive = compareScalar("gt", x, int64_t{0});
         return where(positive, x, d.in(1) * x);
     },
     .derive =
         [](Derivation& d) {
             const Value both = d.call("aten._prelu_kernel_backward.default", {d.dy(), d.arg(0), d.arg(1)});
             d.input(0) = both[0];
             d.input(1) = both[1];
         },
     .samples = "f32[2, 3], f32[1, 3]\nbf16[4], bf16[1]"},
    // The weight has one slope per channel (dim 1), or one for all.
    {.schema = "aten.prelu.default(Tensor self, Tensor weight) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         Value weight = d.in(1);
         if (weight.rank() != 0) {
             SymDims sizes(static_cast<size_t>(std::max<int64_t>(x.rank(), 1)), SymInt(1));
             if (x.rank() >= 2) sizes[1] = weight.size(0);
             if (x.rank() == 1) sizes[0] = weight.size(0);
             if (x.rank() == 0) sizes.clear();
             weight = view(weight, sizes);
         }
         return d.call("aten._prelu_kernel.default", {x, weight});
     },
     .samples = "f32[2, 3, 2], f32[3]\nf32[2, 3], f32[1]"},
    // The first half of a dim times the sigmoid of the second.
    {.schema = "aten.glu.default(Tensor self, int dim=-1) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferGlu,
     .eval = evalGlu,
     .derive = [](Derivation& d) { deriveBy(d, "aten.glu_backward.default", {d.arg("dim")}); },
     .lower =
         [](LowerContext& c) {
             std::vector<Expr> at = c.index();
             const Expr a = c.loadAt(0, at);
             const auto dim = static_cast<size_t>(c.dimOf("dim", c.in(size_t{0}).rank()));
             at[dim] = Expr::make(ExprKind::Add, {at[dim], c.out().sizes[dim].expr()});
             return a * call1("sigmoid", c.loadAt(0, at));
         },
     .samples = "f32[2, 4]\nf32[4, 3], 0\nbf16[2, 2, 3], 1\nf64[4]"},
};

}  // namespace

std::span<const OpDef> activationOps() { return kActivationOps; }

}  // namespace cutaway
