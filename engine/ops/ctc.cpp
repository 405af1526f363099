// Connectionist temporal classification: the probability that a row of class probabilities reads as a target once
// repetitions and blanks are left out, summed over all ways to do so (Graves et al., 2006, whose equations are named).
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the logarithm of probability 0

// -- types

bool lengthsAreTensors(const CallView& c) { return c.op().name().ends_with(".Tensor"); }
/// The longest target: known from a list; of lengths in a tensor only that it is no longer than the targets' rows.
Result<SymInt> longestTarget(const InferContext& c, const TensorType& targets) {
    if (lengthsAreTensors(c)) {
        for (const char* param : {"input_lengths", "target_lengths"}) {
            CT_TRY(const TensorType lengths, c.tensor(param));
            if (!isIntegral(lengths.dtype, false)) return c.fail("needs integer lengths, not " + lengths.text());
        }
        return targets.sizes.back();
    }
    CT_TRY(const std::vector<int64_t> lengths, c.integers("target_lengths"));
    int64_t longest = 0, all = 0;
    for (const int64_t length : lengths) {
        if (length < 0) return c.fail("a target has length " + std::to_string(length));
        all = checkedAdd(all, length);
        longest = std::max(longest, length);
    }
    if (targets.rank() == 1 && differ(targets.sizes[0], all))
        return c.fail("the targets have " + std::to_string(all) + " classes, not those of " + targets.text());
    if (targets.rank() == 2 && targets.sizes[1].isInt() && targets.sizes[1].value() < longest)
        return c.fail("a target of length " + std::to_string(longest) + " does not fit into " + targets.text());
    return SymInt(longest);
}
/// As many lengths as the batch has rows, none longer than the input.
Result<void> checkLengths(const InferContext& c, const TensorType& probabilities) {
    const SymInt &steps = probabilities.sizes[0], &batch = probabilities.sizes[1];
    for (const char* param : {"input_lengths", "target_lengths"}) {
        SymInt count;
        if (lengthsAreTensors(c)) {
            CT_TRY(const TensorType lengths, c.tensor(param));
            count = numel(lengths.sizes);
        } else {
            CT_TRY(const std::vector<int64_t> lengths, c.integers(param));
            count = static_cast<int64_t>(lengths.size());
            for (const int64_t length : lengths)
                if (std::string_view(param) == "input_lengths" && steps.isInt() && length > steps.value())
                    return c.fail("an input of length " + std::to_string(length) + " is longer than " +
                                  probabilities.text());
        }
        if (differ(count, batch)) return c.fail("'" + std::string(param) + "' needs one length for each of the batch");
    }
    return {};
}
struct Loss {
    TensorType probabilities, targets;
    SymInt longest;
};
Result<Loss> readLoss(const InferContext& c) {
    Loss loss;
    CT_TRY(loss.probabilities, c.tensor("log_probs"));
    CT_TRY(loss.targets, c.tensor("targets"));
    if (loss.probabilities.rank() != 3)
        return c.fail("needs logarithms of probabilities of 3 dims (steps, batch, classes), not " +
                      loss.probabilities.text());
    if (loss.probabilities.dtype != DType::F32 && loss.probabilities.dtype != DType::F64)
        return c.fail("needs float32 or float64, not " + loss.probabilities.text());
    if (numel(loss.probabilities.sizes) == SymInt(0)) return c.fail("log_probs must not be empty");
    if (loss.targets.dtype != DType::I64 && loss.targets.dtype != DType::I32)
        return c.fail("needs int64 or int32 targets, not " + loss.targets.text());
    if (loss.targets.rank() != 1 && loss.targets.rank() != 2)
        return c.fail("needs targets in rows or behind each other, not " + loss.targets.text());
    if (loss.targets.rank() == 2 && differ(loss.targets.sizes[0], loss.probabilities.sizes[1]))
        return c.fail("needs a row of targets for each of the batch, not " + loss.targets.text());
    CT_TRY(const int64_t blank, c.integer("blank"));
    const SymInt& classes = loss.probabilities.sizes[2];
    if (blank < 0 || (classes.isInt() && blank >= classes.value()))
        return c.fail("blank " + std::to_string(blank) + " is not a class of " + loss.probabilities.text());
    CT_TRY_VOID(checkLengths(c, loss.probabilities));
    CT_TRY(loss.longest, longestTarget(c, loss.targets));
    return loss;
}
Result<ValueType> inferCtc(const InferContext& c) {
    CT_TRY(const Loss loss, readLoss(c));
    const auto& [steps, batch] = std::pair(loss.probabilities.sizes[0], loss.probabilities.sizes[1]);
    const auto made = [&](SymDims sizes) {
        return TensorType::contiguous(loss.probabilities.dtype, std::move(sizes), loss.probabilities.device);
    };
    return ValueType(TupleType{made({batch}), made({batch, steps, loss.longest * SymInt(2) + SymInt(1)})});
}
Result<ValueType> inferCtcBackward(const InferContext& c) {
    CT_TRY(const Loss loss, readLoss(c));
    const SymInt &steps = loss.probabilities.sizes[0], &batch = loss.probabilities.sizes[1];
    for (const char* param : {"grad", "neg_log_likelihood"}) {
        CT_TRY(const TensorType each, c.tensor(param));
        if (each.rank() != 1 || differ(each.sizes[0], batch) || each.dtype != loss.probabilities.dtype)
            return c.fail("'" + std::string(param) +
                          "' needs one number of the probabilities' dtype for each of the batch, not " + each.text());
    }
    CT_TRY(const TensorType alpha, c.tensor("log_alpha"));
    if (alpha.rank() != 3 || differ(alpha.sizes[0], batch) || differ(alpha.sizes[1], steps) ||
        differ(alpha.sizes[2], loss.longest * SymInt(2) + SymInt(1)) || alpha.dtype != loss.probabilities.dtype)
        return c.fail("log_alpha " + alpha.text() + " is not that of the loss");
    return ValueType(
        TensorType::contiguous(loss.probabilities.dtype, loss.probabilities.sizes, loss.probabilities.device));
}

// -- kernels

/// One of the batch: its steps, and its target with a blank before, between and behind its classes.
struct Sequence {
    int64_t steps = 0;
    std::vector<int64_t> labels;

    int64_t count() const { return static_cast<int64_t>(labels.size()); }
    /// Whether the blank between two labels may be passed over.
    bool skips(int64_t from, int64_t to) const {
        return labels[static_cast<size_t>(from)] != labels[static_cast<size_t>(to)];
    }
};
std::vector<int64_t> lengthsOf(const EvalContext& c, std::string_view param) {
    return lengthsAreTensors(c) ? packElements<int64_t>(c.in(param)) : c.integersOf(param);
}
Result<std::vector<Sequence>> sequencesOf(const EvalContext& c) {
    const Tensor probabilities = c.in("log_probs"), targets = c.in("targets");
    const std::vector<int64_t> steps = lengthsOf(c, "input_lengths"), lengths = lengthsOf(c, "target_lengths"),
                               classes = packElements<int64_t>(targets);
    const int64_t blank = c.integerOr("blank", 0), row = targets.rank() == 2 ? targets.size(1) : 0;
    std::vector<Sequence> out;
    int64_t start = 0;
    for (size_t b = 0; b < steps.size(); ++b) {
        if (steps[b] < 0 || steps[b] > probabilities.size(0))
            return c.fail("an input has length " + std::to_string(steps[b]) + " of " +
                          std::to_string(probabilities.size(0)) + " steps");
        if (targets.rank() == 2) start = static_cast<int64_t>(b) * row;
        const int64_t room = targets.rank() == 2 ? row : targets.numel() - start;
        if (lengths[b] < 0 || lengths[b] > room)
            return c.fail("a target has length " + std::to_string(lengths[b]) + ", and there are " +
                          std::to_string(room) + " classes");
        Sequence one{steps[b], {blank}};
        for (int64_t i = 0; i < lengths[b]; ++i) {
            const int64_t label = classes[static_cast<size_t>(start + i)];
            if (label < 0 || label >= probabilities.size(2))
                return c.fail("target " + std::to_string(label) + " is not one of " +
                              std::to_string(probabilities.size(2)) + " classes");
            one.labels.push_back(label);
            one.labels.push_back(blank);
        }
        start += lengths[b];
        out.push_back(std::move(one));
    }
    if (targets.rank() == 1 && start != targets.numel())
        return c.fail("the targets have " + std::to_string(start) + " of " + std::to_string(targets.numel()) +
                      " classes");
    return out;
}
double addLogarithms(double a, double b, double c = kNever) {
    const double most = std::max({a, b, c});
    if (most == kNever) return kNever;
    return std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most)) + most;
}
/// Rows of numbers by step and label, or by step and class, of one of the batch.
struct Rows {
    std::vector<double>* all;
    int64_t start, stride;
    double& operator()(int64_t step, int64_t at) const {
        return (*all)[static_cast<size_t>(start + step * stride + at)];
    }
};

/// Eq. (6) and (7): alpha(t, s) is the probability of the steps up to t reading as the labels up to s.
double forward(const Sequence& one, const Rows& p, const Rows& alpha) {
    const auto labelled = [&](int64_t t, int64_t s) { return p(t, one.labels[static_cast<size_t>(s)]); };
    const int64_t count = one.count();
    if (one.steps == 0) return count == 1 ? 0 : kNever;
    for (int64_t s = 0; s < std::min<int64_t>(count, 2); ++s) alpha(0, s) = labelled(0, s);
    for (int64_t t = 1; t < one.steps; ++t)
        for (int64_t s = 0; s < count; ++s)
            alpha(t, s) = labelled(t, s) + addLogarithms(alpha(t - 1, s), s > 0 ? alpha(t - 1, s - 1) : kNever,
                                                         s > 1 && one.skips(s - 2, s) ? alpha(t - 1, s - 2) : kNever);
    return addLogarithms(alpha(one.steps - 1, count - 1), count > 1 ? alpha(one.steps - 1, count - 2) : kNever);
}
EvalResult evalCtc(const EvalContext& c) {
    const auto sequences = sequencesOf(c);
    if (!sequences) return sequences.error();
    std::vector<double> p = packElements<double>(c.in("log_probs"));
    Tensor losses = c.result(0), alphas = c.result(1);
    const int64_t batch = losses.numel(), classes = c.in("log_probs").size(2), labels = alphas.size(2);
    std::vector<double> alpha(static_cast<size_t>(alphas.numel()), kNever), loss;
    for (int64_t b = 0; b < batch; ++b) {
        const Sequence& one = (*sequences)[static_cast<size_t>(b)];
        if (one.count() > labels) return c.fail("log_alpha has no room for the longest target");
        loss.push_back(
            -forward(one, Rows{&p, b * classes, batch * classes}, Rows{&alpha, b * alphas.size(1) * labels, labels}));
    }
    unpackElements(loss, losses);
    unpackElements(alpha, alphas);
    return TensorList{losses, alphas};
}

/// Eq. (10), (11) and (16): beta(t, s) is the probability of the steps from t on reading as the labels from s on; the
/// gradient is that of the scores before their log_softmax, which is what this loss is defined for.
void walkBackward(const Sequence& one, const Rows& p, const Rows& alpha, double loss, double dy, int64_t classes,
                  const Rows& gradient) {
    const int64_t count = one.count();
    std::vector<double> storage(static_cast<size_t>(one.steps * count), kNever);
    const Rows beta{&storage, 0, count};
    for (int64_t t = one.steps - 1; t >= 0; --t) {
        for (int64_t k = 0; k < classes; ++k) gradient(t, k) = kNever;
        for (int64_t s = count - 1; s >= 0; --s) {
            const int64_t label = one.labels[static_cast<size_t>(s)];
            double rest = s >= count - 2 ? 0 : kNever;  // a reading ends with the last class or the blank behind it
            if (t + 1 < one.steps)
                rest = addLogarithms(beta(t + 1, s), s + 1 < count ? beta(t + 1, s + 1) : kNever,
                                     s + 2 < count && one.skips(s + 2, s) ? beta(t + 1, s + 2) : kNever);
            beta(t, s) = rest + p(t, label);
            // At the last step only the last two labels end a reading; if they are one class, the later write counts.
            const double ways = alpha(t, s) + beta(t, s);
            if (t + 1 < one.steps) gradient(t, label) = addLogarithms(gradient(t, label), ways);
            else if (s >= count - 2) gradient(t, label) = ways;
        }
        for (int64_t k = 0; k < classes; ++k)
            gradient(t, k) = (std::exp(p(t, k)) - std::exp(gradient(t, k) + loss - p(t, k))) * dy;
    }
}
EvalResult evalCtcBackward(const EvalContext& c) {
    const auto sequences = sequencesOf(c);
    if (!sequences) return sequences.error();
    std::vector<double> p = packElements<double>(c.in("log_probs")), alpha = packElements<double>(c.in("log_alpha"));
    const std::vector<double> dy = packElements<double>(c.in("grad")),
                              loss = packElements<double>(c.in("neg_log_likelihood"));
    Tensor out = c.result();
    const Tensor alphas = c.in("log_alpha");
    const int64_t batch = out.size(1), classes = out.size(2), labels = alphas.size(2);
    std::vector<double> gradient(static_cast<size_t>(out.numel()), 0);
    for (int64_t b = 0; b < batch; ++b) {
        const Sequence& one = (*sequences)[static_cast<size_t>(b)];
        const auto at = static_cast<size_t>(b);
        if (one.count() > labels) return c.fail("log_alpha has no room for the longest target");
        if (c.flag("zero_infinity") && loss[at] == -kNever) continue;
        const int64_t start = b * classes, step = batch * classes;
        walkBackward(one, Rows{&p, start, step}, Rows{&alpha, b * alphas.size(1) * labels, labels}, loss[at], dy[at],
                     classes, Rows{&gradient, start, step});
    }
    unpackElements(gradient, out);
    return out;
}

// -- the loss as programs call it

void deriveCtc(Derivation& d) {
    if (!d.dy(0)) return;
    const std::string backwardOp =
        lengthsAreTensors(d) ? "aten._ctc_loss_backward.Tensor" : "aten._ctc_loss_backward.default";
    d.input(0) = d.call(backwardOp, {d.dy(0), d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.out(0), d.out(1),
                                     d.arg("blank"), d.arg("zero_infinity")});
}
/// The mean is over the losses by target element; an empty target counts as one.
std::optional<Value> byLength(Decomposition& d, const Value& loss) {
    if (lengthsAreTensors(d)) {
        const Value lengths = reshape(d.in("target_lengths"), {SymInt(-1)});
        return loss / d.call("aten.clamp_min.default", {lengths, int64_t{1}});
    }
    const auto lengths = read(d, d.integers("target_lengths"));
    if (!lengths) return std::nullopt;
    std::vector<Argument> each;
    for (const int64_t length : *lengths)
        each.push_back(scalarTensor(d, static_cast<double>(std::max<int64_t>(length, 1)), loss));
    return loss / d.call("aten.stack.default", {Argument(std::move(each))});
}
Values ctcLoss(Decomposition& d) {
    Value probabilities = d.in("log_probs");
    const bool batched = probabilities.rank() == 3;
    if (!batched && probabilities.rank() != 2)
        return refuse(d, "needs logarithms of probabilities of 2 or 3 dims, not " + probabilities.type().text());
    if (!batched) probabilities = unsqueeze(probabilities, 1);
    const bool zero = d.flag("zero_infinity"), tensors = lengthsAreTensors(d);
    const auto lengths = [&](std::string_view param) -> Argument {
        return tensors ? Argument(reshape(d.in(param), {SymInt(-1)})) : d.arg(param);
    };
    Value loss = d.call(tensors ? "aten._ctc_loss.Tensor" : "aten._ctc_loss.default",
                        {probabilities, convert(d.in("targets"), DType::I64), lengths("input_lengths"),
                         lengths("target_lengths"), d.arg("blank"), zero})[0];
    if (zero) {
        const Value endless = compareScalar("eq", loss, -kNever);
        loss = where(endless, scalarTensor(d, 0.0, loss), loss);
    }
    const int64_t reduction = d.integerOr("reduction", 1);
    if (reduction == 1) {
        const auto divided = byLength(d, loss);
        return divided ? unary("aten.mean.default", *divided) : Value(d.builder(), nullptr);
    }
    if (reduction == 2) return unary("aten.sum.default", loss);
    return batched ? loss : squeezeDims(loss, {0});
}

constexpr OpDef ctc(std::string_view schema, std::string_view samples) {
    return {.schema = schema, .infer = inferCtc, .eval = evalCtc, .derive = deriveCtc, .samples = samples};
}
constexpr OpDef ctcBackward(std::string_view schema, std::string_view samples) {
    return {.schema = schema, .infer = inferCtcBackward, .eval = evalCtcBackward, .samples = samples};
}

constexpr OpDef kCtcOps[] = {
    // The negative logarithm of the target's probability, and alpha, of which the gradient makes use. Lengths in a
    // tensor
    // leave alpha room for the longest target that there may be.
    ctc("aten._ctc_loss.default(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        R"(
f32[5, 2, 4], i64[2, 2]<4, [5, 5], [2, 2]
f64[6, 2, 5], i64[6]<4, [6, 6], [3, 3], 4
f32[3, 1, 4], i64[1, 3]<4, [3], [0]
f32[2, 2, 4], i32[2, 3]<4, [2, 2], [3, 3], 0, True
)"),
    ctc("aten._ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        "f32[3, 1, 4], i64[1, 3]<4, i64[1]>0, i64[1]>0\nf64[3, 1, 5], i64[3]<4, i64[1]>0, i64[1]>0, 4"),
    ctcBackward(
        "aten._ctc_loss_backward.default(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
        "f32[2], f32[3, 2, 4]<2, i64[2, 2]<4, [3, 2], [2, 1], f32[2]>0, f32[2, 3, 5], 0\nf64[1], f64[3, 1, 4]<2, i64[2]<3, [3], [2], f64[1]>0, f64[1, 3, 5], 3, True"),
    ctcBackward(
        "aten._ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
        "f32[2], f32[3, 2, 4]<2, i64[2, 2]<4, i64[2]<4, i64[2]<3, f32[2]>0, f32[2, 3, 5], 0"),
    shorthand(
        "aten.ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        ctcLoss, R"(
f32[5, 2, 4], i64[2, 2]<4, [5, 4], [2, 1]
f64[6, 2, 5], i32[5]<4, [6, 5], [3, 2], 4, 2
f32[3, 2, 4], i64[2, 3]<4, [3, 2], [0, 3], 0, 0, True
f32[5, 4], i64[2]<4, [5], [2]
f32[5, 4], i64[2]<4, [4], [2], 0, 0
)"),
    shorthand(
        "aten.ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        ctcLoss,
        "f32[8, 2, 4], i64[2, 4]<4, i64[2]>0, i64[2]<4\nf64[8, 2, 5], i64[2, 3]<4, i64[2]>0, i32[2]<3, 4, 0, True\nf32[8, 4], i64[0]<4, i64[]>0, i64[]<3, 0, 2\nf32[8, 4], i64[3]<4, i64[]>0, i64[]>0, 0, 0"),
};

}  // namespace

std::span<const OpDef> ctcOps() { return kCtcOps; }

}  // namespace cutaway
