// Losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr std::string_view kLossPairs =
    "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], 0\nf32[2, 3], f32[2, 3], 2\nbf16[4], bf16[4]\nf64[2, 3], f64[2, 3]\nf32[3], f32[2, 3]\nf32[2, 3], f32[3]";

Result<ValueType> inferReducedPair(const InferContext& c) {
    CT_TRY(const int64_t reduction, c.integer("reduction", 1));
    if (reduction < 0 || reduction > 2) return c.fail("reduction is 0 (none), 1 (mean) or 2 (sum)");
    CT_TRY(const ValueType pair, inferRealBroadcast(c));
    if (!isFloating(pair.tensor()->dtype)) return c.fail("needs floating-point tensors");
    if (reduction == 0) return pair;
    return ValueType(TensorType::contiguous(pair.tensor()->dtype, {}, pair.tensor()->device));
}
/// Only the first two operands broadcast: weights and the like take no part in the type.
Result<ValueType> inferReducedFirstTwo(const InferContext& c) {
    CT_TRY(const Operand a, c.operand(0));
    CT_TRY(const Operand b, c.operand(1));
    CT_TRY(const int64_t reduction, c.integer("reduction", 1));
    const Operand operands[] = {a, b};
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    if (!isFloating(type.dtype)) return c.fail("needs floating-point tensors");
    if (reduction == 0) return ValueType(std::move(type));
    return ValueType(TensorType::contiguous(type.dtype, {}, type.device));
}
Value reduced(Decomposition& d, const Value& x) {
    const int64_t reduction = d.integerOr("reduction", 1);
    return reduction == 0 ? x : unary(reduction == 1 ? "aten.mean.default" : "aten.sum.default", x);
}
/// What the loss is divided by: the number of elements for the mean, 1 otherwise.
SymInt meanCount(Decomposition& d, const Value& x) {
    return d.integerOr("reduction", 1) == 1 ? numel(x.sizes()) : SymInt(1);
}
Result<ValueType> inferLossGradient(const InferContext& c) {
    CT_TRY(const Operand x, c.operand(1));
    CT_TRY(const Operand t, c.operand(2));
    CT_TRY(const Operand gradient, c.operand(0));
    const Operand pair[] = {x, t}, all[] = {x, t, gradient};
    CT_TRY(TensorType type, elementwiseType(c, all, resultType(pair)));
    return ValueType(std::move(type));
}
/// Operand 0 or 1 as large as the loss sees it: gradients are shares of the loss's elements.
Value spreadOperand(Derivation& d, size_t position) {
    const Value x = d.in(position);
    const SymDims shapes[] = {d.in(0).sizes(), d.in(1).sizes()};
    const auto sizes = broadcastSizes(shapes);
    return !sizes || x.sizes() == *sizes ? x : expand(x, *sizes);
}
/// The loss is symmetric: the target's gradient is the input's with the two swapped.
void deriveSymmetric(Derivation& d, std::string_view op, std::vector<Argument> rest) {
    auto gradient = [&](size_t a, size_t b) {
        std::vector<Argument> args = {d.dy(), spreadOperand(d, a), spreadOperand(d, b)};
        args.insert(args.end(), rest.begin(), rest.end());
        return d.call(op, std::move(args));
    };
    if (d.needs(0)) d.input(0) = gradient(0, 1);
    if (d.needs(1)) d.input(1) = gradient(1, 0);
}

/// Where the loss and its gradient bend: quadratic within delta of 0, linear beyond.
Values decomposeHuber(Decomposition& d) {
    const double delta = d.real("delta");
    const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
    const Value size = unary("aten.abs.default", x - t);
    const Value small = compareScalar("lt", size, delta);
    const Value square = size * 0.5 * size;
    return fromOpmath(d, reduced(d, where(small, square, (size - 0.5 * delta) * delta)));
}
Values decomposeHuberBackward(Decomposition& d) {
    const double delta = d.real("delta");
    const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
    const SymInt count = meanCount(d, x);
    const Value away = x - t;
    const Value below = compareScalar("lt", away, -delta);
    const Value low = scaledByCount(g, -1, count) * delta;
    const Value above = compareScalar("gt", away, delta);
    const Value high = scaledByCount(g, 1, count) * delta;
    return fromOpmath(d, where(below, low, where(above, high, scaledByCount(away, 1, count) * g)));
}
/// -(t log x + (1 - t) log(1 - x)), the logarithms no less than -100.
Values decomposeBinary(Decomposition& d) {
    const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
    auto bounded = [&](const Value& log) {
        return d.call("aten.maximum.default",
                      {log, full(d.builder(), {}, int64_t{-100}, log.dtype(), log.type().device)});
    };
    const Value away = t - 1;
    const Value rest = away * bounded(unary("aten.log1p.default", -x));
    Value loss = rest - t * bounded(unary("aten.log.default", x));
    if (d.has("weight")) loss = loss * toOpmath(d.in("weight"));
    return fromOpmath(d, reduced(d, loss));
}
Value meanShare(Decomposition& d, const Value& gradient, const Value& x) {
    if (d.integerOr("reduction", 1) != 1) return gradient;
    return d.call("aten.div.Tensor", {gradient, Argument(numel(x.sizes()))});
}
Values decomposeBinaryBackward(Decomposition& d) {
    const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
    const Value scaled = g * (x - t);
    const Value spread = x * subtractFrom(int64_t{1}, x);
    Value dx = scaled / d.call("aten.clamp_min.default", {spread, 1e-12});
    if (d.has("weight")) dx = dx * toOpmath(d.in("weight"));
    return fromOpmath(d, meanShare(d, dx, x));
}
/// Of the target: log(1 - x) - log x, times the gradient.
Value binaryTargetGradient(Derivation& d) {
    const Value x = spreadOperand(d, 0);
    Value dt = unary("aten.log1p.default", -x) - unary("aten.log.default", x);
    if (d.has("weight")) dt = dt * d.in("weight");
    dt = dt * d.dy();
    return d.integerOr("reduction", 1) == 1 ? d.call("aten.div.Scalar", {dt, Argument(numel(x.sizes()))}) : dt;
}

constexpr OpDef kLossOps[] = {
    {.schema = "aten.mse_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedPair,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         return fromOpmath(d, reduced(d, d.call("aten.pow.Tensor_Scalar", {x - t, 2})));
     },
     .derive = [](Derivation& d) { deriveSymmetric(d, "aten.mse_loss_backward.default", {d.arg("reduction")}); },
     .samples = kLossPairs},
    {.schema =
         "aten.mse_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferLossGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
         const Value delta = x - t;
         const SymInt count = meanCount(d, x);
         // Integers are multiplied by the factor as an integer.
         return isFloating(x.dtype()) ? fromOpmath(d, scaledByCount(delta, 2, count) * g)
                                      : delta * (2 / std::max<int64_t>(count.asInt().value_or(3), 1)) * g;
     },
     .samples = "f32[], f32[2, 3], f32[2, 3], 1\nf32[2, 3], f32[2, 3], f32[2, 3], 0\nf32[], f32[2, 3], f32[2, 3], 2"},
    {.schema = "aten.l1_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const auto reduction = d.integer("reduction", 1);
         const Value loss = unary("aten.abs.default", d.in(size_t{0}) - d.in(1));
         return !reduction || *reduction == 0 ? loss
                                              : unary(*reduction == 1 ? "aten.mean.default" : "aten.sum.default", loss);
     },
     .samples = "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], 2"},
    {.schema = "aten.smooth_l1_loss.default(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedPair,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const double beta = d.real("beta");
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         const Value size = unary("aten.abs.default", x - t);
         if (beta == 0) return fromOpmath(d, reduced(d, size));
         const Value small = compareScalar("lt", size, beta);
         const Value square = d.call("aten.pow.Tensor_Scalar", {size, 2}) * 0.5 / beta;
         return fromOpmath(d, reduced(d, where(small, square, size - 0.5 * beta)));
     },
     .derive =
         [](Derivation& d) {
             deriveSymmetric(d, "aten.smooth_l1_loss_backward.default", {d.arg("reduction"), d.arg("beta")});
         },
     .samples = kLossPairs},
    {.schema =
         "aten.smooth_l1_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferLossGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
         const Value delta = x - t;
         const Value size = unary("aten.abs.default", delta);
         const Value scaled = scaledByCount(g, 1, meanCount(d, x));
         const Value small = compareScalar("lt", size, d.real("beta"));
         const Value inner = scaled * delta / d.real("beta");
         return fromOpmath(d, where(small, inner, scaled * unary("aten.sign.default", delta)));
     },
     .samples = "f32[], f32[2, 3], f32[2, 3], 1, 1.0\nf32[2, 3], f32[2, 3], f32[2, 3], 0, 0.5"},
    {.schema = "aten.huber_loss.default(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedPair,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeHuber,
     .derive =
         [](Derivation& d) {
             deriveSymmetric(d, "aten.huber_loss_backward.default", {d.arg("reduction"), d.arg("delta")});
         },
     .samples =
         "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], 0, 0.5\nf32[2, 3], f32[2, 3], 2, 2.0\nbf16[4], bf16[4]\nf64[2, 3], f64[2, 3], 1, 0.25\nf32[0], f32[0], 2\nf32[3], f32[2, 3]\nf32[2, 3], f32[3]"},
    {.schema =
         "aten.huber_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferLossGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeHuberBackward,
     .samples =
         "f32[], f32[2, 3], f32[2, 3], 1, 1.0\nf32[2, 3], f32[2, 3], f32[2, 3], 0, 0.5\nbf16[], bf16[4], bf16[4], 2, 0.5"},
    {.schema =
         "aten.binary_cross_entropy.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedFirstTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeBinary,
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.input(0) = d.call("aten.binary_cross_entropy_backward.default",
                                     {d.dy(), spreadOperand(d, 0), spreadOperand(d, 1), d.arg(2), d.arg("reduction")});
             if (d.needs(1)) d.input(1) = binaryTargetGradient(d);
         },
     .samples =
         "f32[2, 3]%, f32[2, 3]%\nf32[2, 3]%, f32[2, 3]%, f32[3], 0\nf64[4]%, f64[4]%, None, 2\nbf16[4]%, bf16[4]%\nf32[2, 3][1, 2]%, f32[2, 3]%"},
    {.schema =
         "aten.binary_cross_entropy_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferLossGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeBinaryBackward,
     .samples =
         "f32[], f32[2, 3]%, f32[2, 3]%\nf32[2, 3], f32[2, 3]%, f32[2, 3]%, f32[3], 0\nbf16[], bf16[4]%, bf16[4]%, None, 2"},
    // log(1 + exp(-t x)).
    {.schema = "aten.soft_margin_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedPair,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         return fromOpmath(d, reduced(d, unary("aten.log1p.default", unary("aten.exp.default", -x * t))));
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.soft_margin_loss_backward.default",
                                 {d.dy(), spreadOperand(d, 0), spreadOperand(d, 1), d.arg("reduction")});
         },
     .samples = kLossPairs},
    {.schema =
         "aten.soft_margin_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferLossGradient,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
         const Value scaled = t * g;
         const Value slope = unary("aten.sigmoid.default", t * x) - 1;
         return fromOpmath(d, meanShare(d, scaled * slope, x));
     },
     .samples = "f32[], f32[2, 3], f32[2, 3], 1\nf32[2, 3], f32[2, 3], f32[2, 3], 0\nbf16[], bf16[4], bf16[4], 2"},
    // log(1 + exp(x)) - t*x written without overflow.
    {.schema =
         "aten.binary_cross_entropy_with_logits.default(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferReducedFirstTwo,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         // Rounded between the ops, save within the logarithm of the sigmoid.
         const Value x = d.in(0), t = d.in(1);
         auto logSigmoid = [&] {
             const Value wide = toOpmath(x);
             const Value zero = full(d.builder(), {}, int64_t{0}, wide.dtype(), wide.type().device);
             const Value low = d.call("aten.minimum.default", {zero, wide});
             return convert(
                 low - unary("aten.log1p.default", unary("aten.exp.default", -unary("aten.abs.default", wide))),
                 x.dtype());
         };
         Value loss;
         if (d.has("pos_weight")) {
             const Value factor = (d.in("pos_weight") - 1) * t + 1;
             const Value rest = subtractFrom(int64_t{1}, t) * x;
             loss = rest - factor * logSigmoid();
         } else {
             const Value rest = subtractFrom(int64_t{1}, t) * x;
             loss = rest - logSigmoid();
         }
         if (d.has("weight")) loss = loss * d.in("weight");
         return fromOpmath(d, reduced(d, loss));
     },
     .derive =
         [](Derivation& d) {
             if (d.has("pos_weight") || d.needs(1)) {
                 // dx of (1-t)x - f*logsigmoid(x) with f = (p-1)t + 1; dt of the same.
                 const Value x = spreadOperand(d, 0), t = spreadOperand(d, 1);
                 const Value p = d.has("pos_weight") ? d.in("pos_weight") : Value();
                 const Value away = subtractFrom(int64_t{1}, unary("aten.sigmoid.default", x));
                 const Value factor = p ? (p - 1) * t + 1 : Value();
                 const Value pulled = factor ? factor * away : away;
                 Value dx = subtractFrom(int64_t{1}, t) - pulled;
                 const Value logs = unary("aten.log_sigmoid.default", x);
                 Value dt = p ? -x - (p - 1) * logs : -x;
                 if (d.has("weight")) {
                     dx = dx * d.in("weight");
                     dt = dt * d.in("weight");
                 }
                 const SymInt count = meanCount(d, x);
                 d.input(0) = scaledByCount(dx * d.dy(), 1, count);
                 if (d.needs(1)) d.input(1) = scaledByCount(dt * d.dy(), 1, count);
                 return;
             }
             const Value x = spreadOperand(d, 0);
             Value dx = (unary("aten.sigmoid.default", x) - spreadOperand(d, 1)) * d.dy();
             if (d.has("weight")) dx = dx * d.in("weight");
             if (d.integerOr("reduction", 1) == 1) dx = d.call("aten.div.Scalar", {dx, numel(x.sizes())});
             d.input(0) = dx;
         },
     .samples = "f32[2, 3], f32[2, 3]<1\nf32[2, 3], f32[2, 3]<1, f32[3], f32[3]\nbf16[4], bf16[4]<1"},
};

}  // namespace

std::span<const OpDef> lossOps() { return kLossOps; }

}  // namespace cutaway
