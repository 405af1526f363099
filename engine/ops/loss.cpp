// Losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr std::string_view kPairs = "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], 0\nf32[2, 3], f32[2, 3], 2\nbf16[4], bf16[4]\nf64[2, 3], f64[2, 3]";

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
/// 1/N for the mean, 1 otherwise.
double meanFactor(Decomposition& d, const Value& x) {
    if (d.integerOr("reduction", 1) != 1) return 1;
    const SymInt count = numel(x.sizes());
    if (count.isInt()) return 1.0 / static_cast<double>(count.value());
    d.builder().fail(unsupported(d.op().name() + ": the mean needs a fixed number of elements", {}, {"set the sizes of the inputs"}));
    return 1;
}
Result<ValueType> inferLossGradient(const InferContext& c) {
    CT_TRY(const Operand x, c.operand(1));
    CT_TRY(const Operand t, c.operand(2));
    const Operand operands[] = {x, t};
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
/// The loss is symmetric: the target's gradient is the input's with the two swapped.
void deriveSymmetric(Derivation& d, std::string_view op, std::vector<Argument> rest) {
    auto gradient = [&](size_t a, size_t b) {
        std::vector<Argument> args = {d.dy(), d.arg(a), d.arg(b)};
        args.insert(args.end(), rest.begin(), rest.end());
        return d.call(op, std::move(args));
    };
    if (d.needs(0)) d.input(0) = gradient(0, 1);
    if (d.needs(1)) d.input(1) = gradient(1, 0);
}

// -- negative log likelihood

struct Classes {
    int64_t dim;       // of the classes
    Value safeTarget;  // ignored ones as class 0, with the class dim
    Value kept;        // target != ignore_index
};
Result<ValueType> inferNll(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType target, c.tensor(1));
    if (x.rank() < 1 || x.rank() > 2) return c.fail("needs an input of 1 or 2 dims, not " + x.text());
    if (!isFloating(x.dtype)) return c.fail("needs a floating-point input");
    if (target.rank() != x.rank() - 1) return c.fail("the target " + target.text() + " needs one dim less than the input " + x.text());
    CT_TRY(const int64_t reduction, c.integer("reduction", 1));
    const TensorType scalar = TensorType::contiguous(x.dtype, {}, x.device);
    const TensorType each = TensorType::contiguous(x.dtype, target.sizes, x.device);
    return ValueType(TupleType{reduction == 0 && x.rank() == 2 ? each : scalar, scalar});
}
Values decomposeNllForward(Decomposition& d) {
    Value x = d.in(size_t{0});
    const Value target = d.in(1);
    const int64_t dim = x.rank() < 2 ? 0 : 1, reduction = d.integerOr("reduction", 1);
    const Argument ignored = d.arg("ignore_index");
    Value weight;
    if (d.has("weight")) {
        weight = d.in("weight");
        if (x.rank() > 1) {
            SymDims shape(static_cast<size_t>(x.rank()), SymInt(1));
            shape[static_cast<size_t>(dim)] = weight.size(0);
            weight = view(weight, shape);
        }
        x = x * weight;
    }
    auto keeps = [&] { return d.call("aten.ne.Scalar", {target, ignored}); };
    Value kept = keeps();
    const Value safe = where(kept, target, scalarTensor(d.builder(), int64_t{0}, target.dtype(), target.type().device));
    const Value index = unsqueeze(safe, dim);
    auto pick = [&](const Value& from) { return d.call("aten.squeeze.dim", {d.call("aten.gather.default", {from, dim, index}), dim}); };
    const Value loss = -pick(x);
    kept = keeps();
    const Value result = where(kept, loss, scalarTensor(d, int64_t{0}, loss));
    if (reduction == 0 && x.rank() > 1) return {result, full(d.builder(), {}, 0.0, x.dtype(), x.type().device)};
    Value total;
    if (weight) {
        const Value wide = x.rank() > 1 ? expand(weight, x.sizes()) : weight;
        const Value each = pick(wide);
        kept = keeps();
        total = unary("aten.sum.default", where(kept, each, scalarTensor(d, int64_t{0}, each)));
    } else {
        total = convert(unary("aten.sum.default", keeps()), x.dtype());
    }
    if (reduction == 0) return {result, total};
    const Value sumOfAll = unary("aten.sum.default", result);
    if (reduction == 2) return {sumOfAll, total};
    return {sumOfAll / total, total};
}
Values decomposeNllBackward(Decomposition& d) {
    Value g = d.in(size_t{0});
    const Value x = d.in(1);
    Value target = d.in(2);
    const int64_t dim = x.rank() < 2 ? 0 : 1, reduction = d.integerOr("reduction", 1);
    const Argument ignored = d.arg("ignore_index");
    if (reduction == 1) g = g / d.in("total_weight");
    target = unsqueeze(target, dim);
    const Value kept = d.call("aten.ne.Scalar", {target, ignored});
    const Value safe = where(kept, target, scalarTensor(d.builder(), int64_t{0}, target.dtype(), target.type().device));
    const Value zeros = unary("aten.zeros_like.default", x);
    const Value picked = d.call("aten.scatter.value", {zeros, dim, safe, -1.0});
    if (x.rank() > g.rank() && g.rank() > 0) g = unsqueeze(g, dim);
    if (d.has("weight")) {
        SymDims shape(static_cast<size_t>(x.rank()), SymInt(1));
        shape[static_cast<size_t>(dim)] = d.in("weight").size(0);
        g = g * view(d.in("weight"), shape);
    }
    const Value again = d.call("aten.ne.Scalar", {target, ignored});
    return picked * where(again, g, scalarTensor(d, int64_t{0}, g));
}
Values decomposeCrossEntropy(Decomposition& d) {
    const Value x = d.in(size_t{0}), target = d.in(1);
    const int64_t dim = x.rank() == 1 ? 0 : 1, reduction = d.integerOr("reduction", 1);
    if (isFloating(target.dtype()) || d.real("label_smoothing") != 0 || x.rank() > 2) {
        d.builder().fail(unsupported(d.op().name() + ": class probabilities, label smoothing and inputs of more than 2 dims are not expanded", {},
                                     {"compute log_softmax and nll_loss on a flattened input"}));
        return Value();
    }
    const Value logs = d.call("aten.log_softmax.int", {x, dim});
    return d.call("aten.nll_loss_forward.default", {logs, target, d.arg("weight"), reduction, d.arg("ignore_index")})[0];
}

constexpr OpDef kOps[] = {
    {.schema = "aten.mse_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor", .tags = Tag::Reduction, .infer = inferReducedPair,
     .eval = evalExpanded, .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         return fromOpmath(d, reduced(d, d.call("aten.pow.Tensor_Scalar", {x - t, 2})));
     },
     .derive = [](Derivation& d) { deriveSymmetric(d, "aten.mse_loss_backward.default", {d.arg("reduction")}); }, .samples = kPairs},
    {.schema = "aten.mse_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", .tags = Tag::Pointwise,
     .infer = inferLossGradient, .eval = evalExpanded, .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
         const Value delta = x - t;
         return fromOpmath(d, delta * (2 * meanFactor(d, x)) * g);
     },
     .samples = "f32[], f32[2, 3], f32[2, 3], 1\nf32[2, 3], f32[2, 3], f32[2, 3], 0\nf32[], f32[2, 3], f32[2, 3], 2"},
    {.schema = "aten.l1_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor", .infer = inferExpanded, .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const auto reduction = d.integer("reduction", 1);
         const Value loss = unary("aten.abs.default", d.in(size_t{0}) - d.in(1));
         return !reduction || *reduction == 0 ? loss : unary(*reduction == 1 ? "aten.mean.default" : "aten.sum.default", loss);
     },
     .samples = "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[2, 3], 2"},
    {.schema = "aten.smooth_l1_loss.default(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor", .tags = Tag::Reduction,
     .infer = inferReducedPair, .eval = evalExpanded, .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const double beta = d.real("beta");
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         const Value size = unary("aten.abs.default", x - t);
         if (beta == 0) return fromOpmath(d, reduced(d, size));
         const Value small = compareScalar("lt", size, beta);
         const Value square = d.call("aten.pow.Tensor_Scalar", {size, 2}) * 0.5 / beta;
         return fromOpmath(d, reduced(d, where(small, square, size - 0.5 * beta)));
     },
     .derive = [](Derivation& d) { deriveSymmetric(d, "aten.smooth_l1_loss_backward.default", {d.arg("reduction"), d.arg("beta")}); }, .samples = kPairs},
    {.schema = "aten.smooth_l1_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor", .tags = Tag::Pointwise,
     .infer = inferLossGradient, .eval = evalExpanded, .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value g = opmathIn(d, 0), x = opmathIn(d, 1), t = opmathIn(d, 2);
         const Value delta = x - t;
         const Value size = unary("aten.abs.default", delta);
         const Value scaled = g * meanFactor(d, x);
         const Value small = compareScalar("lt", size, d.real("beta"));
         const Value inner = scaled * delta / d.real("beta");
         return fromOpmath(d, where(small, inner, scaled * unary("aten.sign.default", delta)));
     },
     .samples = "f32[], f32[2, 3], f32[2, 3], 1, 1.0\nf32[2, 3], f32[2, 3], f32[2, 3], 0, 0.5"},
    // The negative log probability of the target class; total_weight is what the mean divides by.
    {.schema = "aten.nll_loss_forward.default(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
     .tags = Tag::Reduction, .infer = inferNll, .eval = evalExpanded, .expand = Expand::Decompose, .decompose = decomposeNllForward,
     .derive = [](Derivation& d) {
         d.input(0) = d.call("aten.nll_loss_backward.default", {d.dy(), d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4), d.out(1)});
     },
     .samples = "f32[2, 3], i64[2]<3, None, 1, -100\nf32[2, 3], i64[2]<3, f32[3]>0, 1, -100\nf32[4, 3], i64[4]<3, None, 2, 1\nf32[2, 3], i64[2]<3, None, 0, -100\nf32[3], i64[]<3, None, 1, -100"},
    {.schema = "aten.nll_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType x, c.tensor(1));
         return ValueType(TensorType::contiguous(x.dtype, x.sizes, x.device));
     },
     .eval = evalExpanded, .expand = Expand::Decompose, .decompose = decomposeNllBackward,
     .samples = "f32[], f32[2, 3], i64[2]<3, None, 1, -100, f32[]>0\nf32[], f32[2, 3], i64[2]<3, f32[3]>0, 1, -100, f32[]>0"},
    {.schema = "aten.cross_entropy_loss.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
     .infer = inferExpanded, .eval = evalExpanded, .expand = Expand::Composite, .decompose = decomposeCrossEntropy,
     .samples = "f32[2, 3], i64[2]<3\nf32[2, 3], i64[2]<3, f32[3]>0, 2"},
    {.schema = "aten.nll_loss_nd.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
     .infer = inferExpanded, .eval = evalExpanded, .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.nll_loss_forward.default", {d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4)})[0];
     },
     .samples = "f32[2, 3], i64[2]<3"},
    // log(1 + exp(x)) - t*x written without overflow.
    {.schema = "aten.binary_cross_entropy_with_logits.default(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
     .tags = Tag::Reduction, .infer = inferReducedFirstTwo, .eval = evalExpanded, .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), t = opmathIn(d, 1);
         auto logSigmoid = [&] {
             const Value zero = full(d.builder(), {}, int64_t{0}, x.dtype(), x.type().device);
             const Value low = d.call("aten.minimum.default", {zero, x});
             return low - unary("aten.log1p.default", unary("aten.exp.default", -unary("aten.abs.default", x)));
         };
         Value loss;
         if (d.has("pos_weight")) {
             const Value factor = (toOpmath(d.in("pos_weight")) - 1) * t + 1;
             const Value rest = subtractFrom(int64_t{1}, t) * x;
             loss = rest - factor * logSigmoid();
         } else {
             const Value rest = subtractFrom(int64_t{1}, t) * x;
             loss = rest - logSigmoid();
         }
         if (d.has("weight")) loss = loss * toOpmath(d.in("weight"));
         return fromOpmath(d, reduced(d, loss));
     },
     .derive = [](Derivation& d) {
         if (d.has("pos_weight") || d.needs(1)) {
             // dx of (1-t)x - f*logsigmoid(x) with f = (p-1)t + 1; dt of the same.
             const Value x = d.in(size_t{0}), t = d.in(1);
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
             const double factorOfMean = meanFactor(d, x);
             d.input(0) = dx * d.dy() * factorOfMean;
             if (d.needs(1)) d.input(1) = dt * d.dy() * factorOfMean;
             return;
         }
         const Value x = d.in(size_t{0});
         Value dx = (unary("aten.sigmoid.default", x) - d.in(1)) * d.dy();
         if (d.has("weight")) dx = dx * d.in("weight");
         if (d.integerOr("reduction", 1) == 1) dx = d.call("aten.div.Scalar", {dx, numel(x.sizes())});
         d.input(0) = dx;
     },
     .samples = "f32[2, 3], f32[2, 3]<1\nf32[2, 3], f32[2, 3]<1, f32[3], f32[3]\nbf16[4], bf16[4]<1"},
};

}  // namespace

std::span<const OpDef> lossOps() { return kOps; }

}  // namespace cutaway
