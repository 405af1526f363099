// Losses and similarities that are shorthand for arithmetic. `reduction` is 0 for none, 1 for the mean, 2 for the sum.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

Value reducedLoss(Decomposition& d, const Value& loss) {
    const auto reduction = d.integer("reduction", 1);
    if (!reduction) d.builder().fail(reduction.error());
    if (!reduction || *reduction == 0) return loss;
    return unary(*reduction == 1 ? "aten.mean.default" : "aten.sum.default", loss);
}
Value addScalar(Decomposition& d, const Value& x, double number) { return d.call("aten.add.Scalar", {x, number}); }
Value atLeastZero(Decomposition& d, const Value& x) { return d.call("aten.clamp_min.default", {x, 0}); }
/// margin - x as PyTorch writes it: a filled tensor of the operand's shape minus x.
Value fromFilled(Decomposition& d, const Value& x, const Scalar& number) {
    return d.call("aten.full_like.default", {x, Argument(number)}) - x;
}
Value zerosLike(Decomposition& d, const Value& x) {
    return d.call("aten.zeros_like.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
}

Values decomposeKlDiv(Decomposition& d) {
    const Value x = d.in(size_t{0}), t = d.in(1);
    if (!isFloating(x.dtype()) || !isFloating(t.dtype())) return refuse(d, "needs floating-point tensors");
    if (d.flag("log_target")) {
        const Value distance = t - x;
        return reducedLoss(d, unary("aten.exp.default", t) * distance);
    }
    const Value cross = t * x;
    return reducedLoss(d, d.call("aten.xlogy.Tensor", {t, t}) - cross);
}
Values decomposeCosineSimilarity(Decomposition& d) {
    Value x = d.in("x1"), y = d.in("x2");
    const SymDims shapes[] = {x.sizes(), y.sizes()};
    const auto sizes = broadcastSizes(shapes);
    const Operand operands[] = {{x.type()}, {y.type()}};
    const DType dtype = resultType(operands);
    if (!sizes || !isFloating(dtype)) {
        d.builder().fail(d.fail(!sizes ? sizes.error().message : "needs floating-point tensors"));
        return Value();
    }
    if (!isFloating(x.dtype())) x = convert(x, dtype);
    if (!isFloating(y.dtype())) y = convert(y, dtype);
    if (!(x.sizes() == y.sizes())) {
        y = expand(y, *sizes);
        x = expand(x, *sizes);
    }
    const auto dim = d.dim("dim", x.rank());
    if (!dim) {
        d.builder().fail(dim.error());
        return Value();
    }
    const Argument dims(std::vector<Argument>{d.arg("dim")});
    auto norm = [&](const Value& v) {
        return unary("aten.clone.default", d.call("aten.linalg_vector_norm.default", {v, 2, dims, true}));
    };
    const Value xNorm = norm(x), yNorm = norm(y);
    const Value least = d.call("aten.scalar_tensor.default", {d.real("eps")},
                               {{"dtype", opmathType(dtype)}, {"device", x.type().device}});
    const Value xSafe = d.call("aten.clamp_min.Tensor", {xNorm, least}),
                ySafe = d.call("aten.clamp_min.Tensor", {yNorm, least});
    const Value yUnit = y / ySafe;
    return d.call("aten.sum.dim_IntList", {x / xSafe * yUnit, dims});
}
/// 1 - cos for pairs that belong together (target 1), cos above the margin for those that do not (-1).
Values decomposeCosineEmbedding(Decomposition& d) {
    const Value a = d.in(size_t{0}), b = d.in(1), t = d.in("target");
    if (a.rank() != b.rank() || a.rank() < 1 || a.rank() > 2 || t.rank() != a.rank() - 1) {
        d.builder().fail(d.fail("needs two inputs of 1 or 2 dims and a target of one less, not " + a.type().text() +
                                ", " + b.type().text() + " and " + t.type().text()));
        return Value();
    }
    constexpr double kEpsilon = static_cast<double>(1e-12f);
    const std::vector<int64_t> dim = {a.rank() - 1};
    const Value dot = sum(a * b, dim, false);
    const Value aSquare = addScalar(d, sum(a * a, dim, false), kEpsilon),
                bSquare = addScalar(d, sum(b * b, dim, false), kEpsilon);
    const Value cosine = dot / unary("aten.sqrt.default", aSquare * bSquare);
    const Value zeros = zerosLike(d, cosine);
    const Value together = fromFilled(d, cosine, int64_t{1});
    const Value apart = atLeastZero(d, d.call("aten.sub.Scalar", {cosine, d.real("margin")}));
    const Value first = where(compareScalar("eq", t, int64_t{1}), together, zeros);
    return reducedLoss(d, first + where(compareScalar("eq", t, int64_t{-1}), apart, zeros));
}
Values decomposeHingeEmbedding(Decomposition& d) {
    const Value x = d.in(size_t{0}), t = d.in(1);
    const Value zeros = zerosLike(d, x);
    const Value clamped = atLeastZero(d, fromFilled(d, x, d.real("margin")));
    const Value apart = where(compareScalar("ne", t, int64_t{1}), clamped, zeros);
    return reducedLoss(d, apart + where(compareScalar("ne", t, int64_t{-1}), x, zeros));
}
Values decomposeMarginRanking(Decomposition& d) {
    const Value difference = d.in(size_t{0}) - d.in(1);
    return reducedLoss(d, atLeastZero(d, addScalar(d, -d.in("target") * difference, d.real("margin"))));
}
/// Distances by the p-norm of the difference plus eps; with `swap` the nearer of anchor and positive counts.
Values decomposeTripletMargin(Decomposition& d) {
    const Value anchor = d.in("anchor"), positive = d.in("positive"), negative = d.in("negative");
    if (anchor.rank() != positive.rank() || anchor.rank() != negative.rank())
        return refuse(d, "needs three tensors of as many dims");
    auto distance = [&](const Value& a, const Value& b) {
        const Value apart = addScalar(d, a - b, d.real("eps"));
        return d.call("aten.norm.ScalarOpt_dim",
                      {apart, d.real("p"), Argument(std::vector<int64_t>{std::max<int64_t>(apart.rank() - 1, 0)})});
    };
    const Value near = distance(anchor, positive);
    Value far = distance(anchor, negative);
    if (d.flag("swap")) far = d.call("aten.minimum.default", {far, distance(positive, negative)});
    return reducedLoss(d, atLeastZero(d, addScalar(d, near, d.real("margin")) - far));
}
/// exp(x) - t x (or x - t log x), with Stirling's term for t > 1 if `full`.
Values decomposePoisson(Decomposition& d) {
    const Value x = d.in(size_t{0}), t = d.in(1);
    Value loss;
    if (d.flag("log_input")) {
        const Value product = t * x;
        loss = unary("aten.exp.default", x) - product;
    } else {
        loss = x - t * unary("aten.log.default", addScalar(d, x, d.real("eps")));
    }
    if (d.flag("full")) {
        const Value tail = d.call("aten.mul.Scalar",
                                  {unary("aten.log.default", d.call("aten.mul.Scalar", {t, 6.283185307179586})), 0.5});
        const Value stirling = t * unary("aten.log.default", t) - t + tail;
        loss = loss + d.call("aten.masked_fill.Scalar", {stirling, compareScalar("le", t, int64_t{1}), 0});
    }
    return reducedLoss(d, loss);
}

/// By how much each class comes within the margin of the right one, the right one left out; over classes the mean.
Values decomposeMultiMargin(Decomposition& d) {
    const auto rows = [](const Value& x) {
        return x.rank() == 0 ? view(x, {1, 1}) : x.rank() == 1 ? unsqueeze(x, 0) : x;
    };
    const Value x = rows(d.in("self"));
    Value target = d.in("target");
    const double power = toDouble(d.scalar("p").value_or(Scalar(int64_t{1})));
    if (power != 1 && power != 2) return refuse(d, "p must be 1 or 2");
    if (x.rank() != 2 || x.size(1) == SymInt(0))
        return refuse(d, "needs a vector or a matrix with elements, not " + d.in("self").type().text());
    if (target.rank() == 0) target = view(target, {1});
    if (target.rank() != 1 || !(target.size(0) == x.size(0)))
        return refuse(d,
                      "needs one target for each row of " + x.type().text() + ", not " + d.in("target").type().text());
    const Value classes = target;
    target = unsqueeze(target, 1);
    const Value right = d.call("aten.gather.default", {x, 1, target});
    Value z = atLeastZero(d, subtractFrom(d.scalar("margin").value_or(Scalar(int64_t{1})), right) + x);
    if (power == 2) z = z * z;
    if (d.has("weight")) {
        Value weight = d.in("weight");
        if (weight.rank() == 0) weight = view(weight, {1});
        if (weight.rank() != 1 || !(weight.size(0) == x.size(1)))
            return refuse(d, "needs one weight for each class, not " + weight.type().text());
        const bool ofRows = has(d.release(), ReleaseChange::WeightsOfRows);
        const Value taken =
            d.call("aten.index.Tensor", {weight, Argument(std::vector<Argument>{ofRows ? classes : target})});
        z = z * (ofRows ? unsqueeze(taken, 1) : taken);
    }
    const Value others = d.call("aten.ne.Tensor", {iota(d.builder(), x.size(1), x.type().device), target});
    z = where(others, z, scalarTensor(d, int64_t{0}, z));
    const auto reduction = read(d, d.integer("reduction", 1));
    if (!reduction || *reduction == 1) return unary("aten.mean.default", z);
    if (*reduction == 2) return d.call("aten.div.Tensor", {unary("aten.sum.default", z), Argument(x.size(1))});
    return d.call("aten.mean.dim", {z, Argument(std::vector<int64_t>{1})});
}
/// For every right class by how much each wrong one comes within 1 of it. A row of the target lists the right classes,
/// up to -1.
Values decomposeMultilabelMargin(Decomposition& d) {
    const auto rows = [](const Value& x) {
        return x.rank() == 0 ? view(x, {1, 1}) : x.rank() == 1 ? unsqueeze(x, 0) : x;
    };
    const Value given = d.in("self"), labels = d.in("target"), x = rows(given), target = rows(labels);
    if (given.rank() > 2 || x.size(1) == SymInt(0))
        return refuse(d, "needs a vector or a matrix with elements, not " + given.type().text());
    if (!(labels.sizes() == given.sizes()))
        return refuse(d, "needs a target of the input's sizes, not " + labels.type().text());
    const Value classes = iota(d.builder(), x.size(1), x.type().device);
    const auto integer = [&](int64_t number) { return scalarTensor(d.builder(), number, DType::I64, x.type().device); };
    const Value ends = compareScalar("eq", target, int64_t{-1});
    const Value end =
        d.call("aten.amin.default",
               {where(ends, classes,
                      d.call("aten.scalar_tensor.default", {Argument(x.size(1))},
                             {{"dtype", DType::I64}, {"layout", Layout::Strided}, {"device", x.type().device}})),
                Argument(std::vector<int64_t>{-1}), true});
    const Value listed = d.call("aten.lt.Tensor", {classes, end});
    const Value right = d.call("aten.gather.default", {x, -1, where(listed, target, integer(0))});
    const Value marked = where(listed, target, integer(-1));
    const Value isTarget = d.call("aten.any.dim", {d.call("aten.eq.Tensor", {classes, unsqueeze(marked, -1)}), 1});
    Value z = atLeastZero(d, subtractFrom(1.0, unsqueeze(permute(right, {1, 0}), -1)) + x);
    z = d.call("aten.div.Tensor", {z, Argument(x.size(1))});
    z = where(isTarget, scalarTensor(d, int64_t{0}, z), z);
    // What stands behind the -1 names no class. PyTorch's compiler counts it as class 0, unlike its kernels.
    z = where(unsqueeze(permute(listed, {1, 0}), -1), z, scalarTensor(d, int64_t{0}, z));
    const auto reduction = read(d, d.integer("reduction", 1));
    if (reduction && *reduction == 2) z = unary("aten.sum.default", z);
    else z = sum(z, {0, -1}, false);
    if (reduction && *reduction == 1) z = unary("aten.mean.default", z);
    return {z, reshape(convert(isTarget, x.dtype()), labels.sizes())};
}

constexpr OpDef lossRow(std::string_view schema, Fn<Values(Decomposition&)> decompose, std::string_view samples) {
    return {.schema = schema,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = decompose,
            .samples = samples};
}

constexpr OpDef kLossCompositeOps[] = {
    lossRow(
        "aten.kl_div.default(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
        decomposeKlDiv,
        "f32[2, 3], f32[2, 3]>0\nf32[2, 3], f32[2, 3], 2, log_target = True\nf32[2, 3], f32[3]>0, 0\nbf16[4], bf16[4]>0\nf64[2, 3], f64[2, 3]>0, 2"),
    lossRow(
        "aten.cosine_similarity.default(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        decomposeCosineSimilarity,
        "f32[2, 3], f32[2, 3]\nf32[2, 3, 4], f32[3, 1], -1\nf64[4], f64[4], 0\nbf16[2, 3], bf16[2, 3]\nf32[2, 3], f32[2, 3], 0, 100.0"),
    lossRow(
        "aten.cosine_embedding_loss.default(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        decomposeCosineEmbedding,
        "f32[3, 4], f32[3, 4], f32[3], 0.1\nf32[4], f32[4], i64[], 0.0, 0\nf64[3, 4], f64[3, 4], i64[3]<2, 0.0, 2"),
    lossRow("aten.hinge_embedding_loss.default(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
            decomposeHingeEmbedding, "f32[2, 3], f32[2, 3]\nf32[2, 3], i64[2, 3]<2, 0.5, 0"),
    lossRow(
        "aten.margin_ranking_loss.default(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        decomposeMarginRanking, "f32[3], f32[3], f32[3]\nf32[2, 3], f32[2, 3], f32[3], 0.1, 2"),
    lossRow(
        "aten.triplet_margin_loss.default(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
        decomposeTripletMargin,
        "f32[3, 4], f32[3, 4], f32[3, 4]\nf32[3, 4], f32[3, 4], f32[3, 4], 0.5, 1.0, 1e-6, True, 0"),
    lossRow(
        "aten.multi_margin_loss.default(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
        decomposeMultiMargin,
        "f32[3, 4], i64[3]<4\nf64[3, 4], i64[3]<4, 2, 0.5, f64[4]>0, 0\nf32[4], i64[]<4, 1, 1, None, 2"),
    lossRow(
        "aten.multilabel_margin_loss_forward.default(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
        decomposeMultilabelMargin, "f32[3, 4], i64[3, 4]<4, 1\nf64[3, 4], i64[3, 4]<4, 0\nf32[4], i64[4]<4, 2"),
    lossRow(
        "aten.multilabel_margin_loss.default(Tensor self, Tensor target, int reduction=1) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.multilabel_margin_loss_forward.default", {d.in(0), d.in(1), d.arg("reduction")})[0];
        },
        "f32[3, 4], i64[3, 4]<4"),
    lossRow(
        "aten.dist.default(Tensor self, Tensor other, Scalar p=2) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.norm.Scalar", {d.in(0) - d.in(1), d.arg("p")});
        },
        "f32[2, 3], f32[3]\nf64[4], f64[4], 1"),
    lossRow(
        "aten.poisson_nll_loss.default(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
        decomposePoisson,
        "f32[2, 3], f32[2, 3]>0, True, False, 1e-8, 1\nf32[2, 3], f32[2, 3]>0, True, True, 1e-8, 2\nf32[2, 3]>0, f32[2, 3]>0, False, False, 1e-8, 0"),
};

}  // namespace

std::span<const OpDef> lossCompositeOps() { return kLossCompositeOps; }

}  // namespace cutaway
