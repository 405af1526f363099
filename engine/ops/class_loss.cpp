// Losses over classes: negative log likelihood and cross entropy. `reduction` is 0 for none, 1 for the mean, 2 for the
// sum. The classes lie along dim 1, or dim 0 of an input of one dim.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

/// A target has the sizes of the input without its classes, and a weight one number per class.
Result<void> fitsClasses(const InferContext& c, const TensorType& x, const TensorType& target) {
    SymDims sizes = x.sizes;
    const size_t classes = x.rank() < 2 ? 0 : 1;
    sizes.erase(sizes.begin() + static_cast<int64_t>(classes));
    for (size_t i = 0; i < sizes.size(); ++i)
        if (differ(sizes[i], target.sizes[i]))
            return c.fail("the target " + target.text() + " does not fit " + x.text());
    if (!c.has("weight")) return {};
    CT_TRY(const TensorType weight, c.tensor("weight"));
    const SymInt &own = x.sizes[classes], given = numel(weight.sizes);
    if (weight.rank() > 1 || differ(own, given))
        return c.fail("the weight " + weight.text() + " does not have one number per class of " + x.text());
    return {};
}

Result<ValueType> inferNll(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType target, c.tensor(1));
    const bool planes = c.op().name().starts_with("aten.nll_loss2d");
    if (planes ? x.rank() != 4 : x.rank() < 1 || x.rank() > 2)
        return c.fail(std::string("needs an input of ") + (planes ? "4" : "1 or 2") + " dims, not " + x.text());
    if (!isFloating(x.dtype)) return c.fail("needs a floating-point input");
    if (isFloating(target.dtype)) return c.fail("needs class numbers as the target, not " + target.text());
    if (target.rank() != x.rank() - 1)
        return c.fail("the target " + target.text() + " needs one dim less than the input " + x.text());
    CT_TRY_VOID(fitsClasses(c, x, target));
    CT_TRY(const int64_t reduction, c.integer("reduction", 1));
    const TensorType scalar = TensorType::contiguous(x.dtype, {}, x.device);
    const TensorType each = TensorType::contiguous(x.dtype, target.sizes, x.device);
    return ValueType(TupleType{reduction == 0 && x.rank() > 1 ? each : scalar, scalar});
}
/// A weight per class beside the input.
Value besideClasses(const Value& weight, const Value& x, int64_t dim) {
    if (x.rank() < 2) return weight;
    SymDims shape(static_cast<size_t>(x.rank()), SymInt(1));
    shape[static_cast<size_t>(dim)] = weight.size(0);
    return view(weight, shape);
}
Values decomposeNllForward(Decomposition& d) {
    Value x = d.in(size_t{0});
    const Value target = d.in(1);
    const int64_t dim = x.rank() < 2 ? 0 : 1, reduction = d.integerOr("reduction", 1);
    const Argument ignored = d.arg("ignore_index");
    Value weight;
    if (d.has("weight")) {
        weight = besideClasses(d.in("weight"), x, dim);
        x = x * weight;
    }
    auto keeps = [&] { return d.call("aten.ne.Scalar", {target, ignored}); };
    Value kept = keeps();
    const Value safe = where(kept, target, scalarTensor(d.builder(), int64_t{0}, target.dtype(), target.type().device));
    const Value index = unsqueeze(safe, dim);
    auto pick = [&](const Value& from) {
        return d.call("aten.squeeze.dim", {d.call("aten.gather.default", {from, dim, index}), dim});
    };
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
    if (d.has("weight")) g = g * besideClasses(d.in("weight"), x, dim);
    const Value again = d.call("aten.ne.Scalar", {target, ignored});
    return picked * where(again, g, scalarTensor(d, int64_t{0}, g));
}
void deriveNll(Derivation& d, std::string_view backward) {
    d.input(0) = d.call(backward, {d.dy(), d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4), d.out(1)});
}
Result<ValueType> inferNllBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType x, c.tensor(1));
    CT_TRY(const TensorType target, c.tensor(2));
    if (x.rank() < 1 || target.rank() != x.rank() - 1 || (x.rank() >= 2 && !(target.sizes[0] == x.sizes[0])))
        return c.fail("the target " + target.text() + " does not fit " + x.text());
    CT_TRY_VOID(fitsClasses(c, x, target));
    CT_TRY(const TensorType total, c.tensor("total_weight"));
    if (const SymInt one = numel(total.sizes); differ(one, 1))
        return c.fail("the total weight " + total.text() + " is not one number");
    CT_TRY(const int64_t reduction, c.integer("reduction"));
    if (reduction == 0 ? !(gradient.sizes == target.sizes)
                       : gradient.rank() > 0 && !(numel(gradient.sizes) == SymInt(1)))
        return c.fail("the gradient " + gradient.text() + " does not fit the loss");
    return ValueType(TensorType::contiguous(x.dtype, x.sizes, x.device));
}

/// nll_loss of any rank: nll_loss_forward up to 2 dims, nll_loss2d_forward for 4, other ranks reshaped to 4 dims.
Value likelihood(Decomposition& d, const Value& x, const Value& target, int64_t reduction) {
    const Argument weight = d.arg("weight"), ignored = d.arg("ignore_index");
    if (x.rank() <= 2) return d.call("aten.nll_loss_forward.default", {x, target, weight, reduction, ignored})[0];
    if (x.rank() == 4) return d.call("aten.nll_loss2d_forward.default", {x, target, weight, reduction, ignored})[0];
    const Value flat = d.call("aten.reshape.default", {x, Argument(SymDims{x.size(0), x.size(1), 1, -1})});
    const Value flatTarget = d.call("aten.reshape.default", {target, Argument(SymDims{x.size(0), 1, -1})});
    const Value loss = d.call("aten.nll_loss2d_forward.default", {flat, flatTarget, weight, reduction, ignored})[0];
    return reduction == 0 ? view(loss, target.sizes()) : loss;
}

struct CrossEntropy {
    Value logs, target;
    int64_t dim = 1, reduction = 1;
    double smoothing = 0;
};
/// The target gives the probability of every class: -sum(p log q), the mean being over the samples.
Value ofProbabilities(Decomposition& d, const CrossEntropy& c) {
    Value target = c.target;
    const Value x = d.in(size_t{0});
    if (c.smoothing > 0) {
        const Value scaled = d.call("aten.mul.Scalar", {target, 1 - c.smoothing});
        const auto classes = x.size(c.dim).asInt();
        if (classes) target = d.call("aten.add.Scalar", {scaled, c.smoothing / static_cast<double>(*classes)});
        else
            target =
                scaled + scaledByCount(full(d.builder(), {}, Scalar(c.smoothing), target.dtype(), target.type().device),
                                       1, x.size(c.dim));
    }
    const Value weight = d.has("weight") ? besideClasses(d.in("weight"), x, c.dim) : Value();
    Value product = c.logs * target;
    if (weight) product = product * weight;
    if (c.reduction == 0) return -sum(product, {c.dim}, false);
    const Value total = -unary("aten.sum.default", product);
    if (c.reduction == 2) return total;
    SymInt samples = 1;
    for (int64_t i = 0; i < x.rank(); ++i)
        if (i != c.dim) samples = samples * x.size(i);
    return d.call("aten.div.Scalar", {total, Argument(samples)});
}
/// The target class gets 1 - smoothing, and all classes share the rest.
Value ofSmoothedClasses(Decomposition& d, const CrossEntropy& c) {
    const Value x = d.in(size_t{0});
    const Value loss = likelihood(d, c.logs, c.target, c.reduction);
    const Value weight = d.has("weight") ? d.in("weight") : Value();
    Value spread = weight ? c.logs * besideClasses(weight, x, c.dim) : c.logs;
    spread = -sum(spread, {c.dim}, false);
    const Value ignored = d.call("aten.eq.Scalar", {c.target, d.arg("ignore_index")});
    spread = d.call("aten.masked_fill.Scalar", {spread, ignored, 0.0});
    if (c.reduction == 1) {
        Value count;
        if (weight) {
            const Value safe = d.call("aten.masked_fill.Scalar", {c.target, ignored, 0});
            const Value flat = safe.rank() > 1 ? reshape(safe, {numel(safe.sizes())}) : safe;
            Value each = d.call("aten.gather.default", {weight, 0, safe.rank() == 0 ? unsqueeze(safe, 0) : flat});
            if (safe.rank() > 1) each = view(each, safe.sizes());
            count = unary("aten.sum.default", d.call("aten.masked_fill.Scalar", {each, ignored, 0}));
        } else {
            count = unary("aten.sum.default", unary("aten.bitwise_not.default", ignored));
        }
        spread = unary("aten.sum.default", spread) / count;
    } else if (c.reduction == 2) {
        spread = unary("aten.sum.default", spread);
    }
    const auto classes = x.size(c.dim).asInt();
    spread = classes ? d.call("aten.mul.Scalar", {spread, c.smoothing / static_cast<double>(*classes)})
                     : scaledByCount(spread, c.smoothing, x.size(c.dim));
    return d.call("aten.mul.Scalar", {loss, 1 - c.smoothing}) + spread;
}
Values decomposeCrossEntropy(Decomposition& d) {
    const Value x = d.in(size_t{0}), target = d.in(1);
    CrossEntropy c;
    const auto reduction = d.integer("reduction", 1);
    c.smoothing = d.real("label_smoothing");
    const bool probabilities = isFloating(target.dtype());
    if (!reduction || x.rank() == 0 || (probabilities ? target.sizes() != x.sizes() : target.rank() != x.rank() - 1) ||
        c.smoothing < 0 || c.smoothing > 1) {
        d.builder().fail(!reduction      ? reduction.error()
                         : x.rank() == 0 ? d.fail("needs an input with a dim of classes")
                         : c.smoothing < 0 || c.smoothing > 1
                             ? d.fail("label_smoothing lies between 0 and 1")
                             : d.fail("the target " + target.type().text() +
                                      " is neither class numbers nor probabilities for " + x.type().text()));
        return Value();
    }
    c.target = target;
    c.reduction = *reduction;
    c.dim = x.rank() == 1 ? 0 : 1;
    c.logs = d.call("aten.log_softmax.int", {x, c.dim});
    if (probabilities) return ofProbabilities(d, c);
    if (c.smoothing > 0) return ofSmoothedClasses(d, c);
    return likelihood(d, c.logs, target, c.reduction);
}

constexpr OpDef kClassLossOps[] = {
    // The negative log probability of the target class; total_weight is what the mean divides by.
    {.schema =
         "aten.nll_loss_forward.default(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
     .tags = Tag::Reduction,
     .infer = inferNll,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNllForward,
     .derive = [](Derivation& d) { deriveNll(d, "aten.nll_loss_backward.default"); },
     .samples =
         "f32[2, 3], i64[2]<3, None, 1, -100\nf32[2, 3], i64[2]<3, f32[3]>0, 1, -100\nf32[4, 3], i64[4]<3, None, 2, 1\nf32[2, 3], i64[2]<3, None, 0, -100\nf32[3], i64[]<3, None, 1, -100"},
    {.schema =
         "aten.nll_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
     .infer = inferNllBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNllBackward,
     .samples =
         "f32[], f32[2, 3], i64[2]<3, None, 1, -100, f32[]>0\nf32[], f32[2, 3], i64[2]<3, f32[3]>0, 1, -100, f32[]>0"},
    {.schema =
         "aten.cross_entropy_loss.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeCrossEntropy,
     .samples = R"(
f32[2, 3], i64[2]<3
f32[2, 3], i64[2]<3, f32[3]>0, 2
f32[2, 3], i64[2]<3, f32[3]>0, 0
f32[4, 3], i64[4]<3, None, 1, 1
f32[3], i64[]<3
f32[2, 4, 3, 5], i64[2, 3, 5]<4
f32[2, 4, 3, 5], i64[2, 3, 5]<4, f32[4]>0, 0
f32[2, 4, 3], i64[2, 3]<4
f32[2, 4, 3], i64[2, 3]<4, None, 0
f32[2, 4, 3, 2, 2], i64[2, 3, 2, 2]<4, None, 2
f32[2, 3], f32[2, 3]>0
f32[2, 3], f32[2, 3]>0, f32[3]>0, 0
f32[2, 4, 3], f32[2, 4, 3]>0, None, 2
f32[2, 3], f32[2, 3]>0, f32[3]>0, 1, -100, 0.1
f32[2, 3], i64[2]<3, None, 1, -100, 0.1
f32[4, 3], i64[4]<3, f32[3]>0, 1, 1, 0.1
f32[2, 3], i64[2]<3, f32[3]>0, 0, -100, 0.2
f32[2, 4, 3], i64[2, 3]<4, None, 2, -100, 0.1
bf16[2, 3], i64[2]<3
f64[2, 3], f64[2, 3]>0
)"},
    {.schema =
         "aten.nll_loss_nd.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const auto reduction = d.integer("reduction", 1);
         if (!reduction) d.builder().fail(reduction.error());
         return reduction ? likelihood(d, d.in(size_t{0}), d.in(1), *reduction) : Value();
     },
     .samples = "f32[2, 3], i64[2]<3\nf32[2, 3, 2, 2], i64[2, 2, 2]<3\nf32[2, 3, 4], i64[2, 4]<3, None, 0"},
    {.schema =
         "aten.nll_loss.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.nll_loss_forward.default", {d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4)})[0];
     },
     .samples = "f32[2, 3], i64[2]<3\nf32[2, 3], i64[2]<3, f32[3]>0, 0"},
    {.schema =
         "aten.nll_loss2d_forward.default(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
     .tags = Tag::Reduction,
     .infer = inferNll,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNllForward,
     .derive = [](Derivation& d) { deriveNll(d, "aten.nll_loss2d_backward.default"); },
     .samples =
         "f32[2, 3, 2, 2], i64[2, 2, 2]<3, None, 1, -100\nf32[2, 3, 2, 2], i64[2, 2, 2]<3, f32[3]>0, 0, -100\nf64[2, 3, 2, 2], i64[2, 2, 2]<3, f64[3]>0, 2, 1"},
    {.schema =
         "aten.nll_loss2d_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
     .infer = inferNllBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNllBackward,
     .samples =
         "f32[], f32[2, 3, 2, 2], i64[2, 2, 2]<3, None, 1, -100, f32[]>0\nf32[2, 2, 2], f32[2, 3, 2, 2], i64[2, 2, 2]<3, f32[3]>0, 0, -100, f32[]>0"},
};

}  // namespace

std::span<const OpDef> classLossOps() { return kClassLossOps; }

}  // namespace cutaway
