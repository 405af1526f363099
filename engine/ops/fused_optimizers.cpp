// A step of an optimizer on all parameters at once, as torch.optim calls it with fused=True: in place, and as a call
// that gives new lists. Half precision is computed in f32, and what counts steps in f64.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

/// Lists of tensors as the schema has them, one after the other; an empty one stays empty.
using Lists = std::vector<std::vector<Value>>;

struct Optimizer {
    std::vector<std::string_view> lists;  // what a step writes, the parameters and their gradients first
    /// New values of one parameter's tensors, in the order of the lists, in the dtype that they are computed in.
    std::vector<Value> (*step)(Decomposition& d, std::vector<Value> old, const Value& count);
    bool counts = true;  // whether there are tensors that count steps
};

/// lr, a number or a tensor of one.
OperandValue rate(Decomposition& d) {
    const auto at = static_cast<size_t>(d.position("lr"));
    const Argument& given = d.arg("lr");
    if (given.node() == nullptr) return d.any(at);
    const Value lr = convert(d.in(at), DType::F64);
    return OperandValue(lr.rank() == 0 ? lr : reshape(lr, {}));
}
/// L2 weight decay: weight_decay * parameter is added to the gradient.
Value decayed(Decomposition& d, const Value& gradient, const Value& parameter) {
    const double decay = d.real("weight_decay");
    return decay == 0 ? gradient : gradient + parameter * decay;
}

/// Adam: parameters, gradients, their mean and that of their squares, and (amsgrad) the largest of the latter.
template <bool decoupled>
std::vector<Value> adam(Decomposition& d, std::vector<Value> old, const Value& count) {
    Value parameter = old[0], gradient = old[1];
    if (d.flag("maximize")) gradient = -gradient;
    const OperandValue lr = rate(d);
    const double decay = d.real("weight_decay"), beta1 = d.real("beta1"), beta2 = d.real("beta2");
    if (decoupled && decay != 0) {
        const Value shrunk = parameter * decay;
        parameter = parameter - shrunk * lr;
    } else {
        gradient = decayed(d, gradient, parameter);
    }
    const Value apart = gradient - old[2];
    const Value mean = 1 - beta1 < 0.5 ? old[2] + apart * (1 - beta1) : gradient - apart * beta1;
    const Value squares = old[3] * beta2 + gradient * gradient * (1 - beta2);
    const auto correction = [&](double beta) { return subtractFrom(1.0, d.call("aten.pow.Scalar", {beta, count})); };
    const Value largest = old.size() > 4 ? d.call("aten.maximum.default", {old[4], squares}) : Value();
    const Value root =
        unary("aten.sqrt.default", largest ? largest : squares) / unary("aten.sqrt.default", correction(beta2));
    const Value size = unary("aten.reciprocal.default", correction(beta1)) * lr;
    std::vector<Value> fresh = {parameter - mean * size / (root + d.real("eps")), old[1], mean, squares};
    if (largest) fresh.push_back(largest);
    return fresh;
}
/// Gradient descent: parameters, gradients, and with momentum what is left of earlier gradients.
std::vector<Value> descent(Decomposition& d, std::vector<Value> old, const Value&) {
    Value gradient = d.flag("maximize") ? -old[1] : old[1];
    gradient = decayed(d, gradient, old[0]);
    const double momentum = d.real("momentum");
    Value kept;
    if (momentum != 0) {
        kept = d.flag("is_first_step") ? gradient : old[2] * momentum + gradient * (1 - d.real("dampening"));
        gradient = d.flag("nesterov") ? gradient + kept * momentum : kept;
    }
    std::vector<Value> fresh = {old[0] - gradient * rate(d), old[1]};
    if (kept) fresh.push_back(kept);
    return fresh;
}
/// Adagrad: parameters, gradients, and the sums of their squares.
std::vector<Value> adagrad(Decomposition& d, std::vector<Value> old, const Value& count) {
    Value gradient = d.flag("maximize") ? -old[1] : old[1];
    gradient = decayed(d, gradient, old[0]);
    const Value squares = old[2] + gradient * gradient;
    const Value slowed = (count - 1.0) * d.real("lr_decay") + 1.0;
    const Value size = unary("aten.reciprocal.default", slowed) * rate(d);
    return {old[0] - gradient / (unary("aten.sqrt.default", squares) + d.real("eps")) * size, old[1], squares};
}
Optimizer optimizerOf(const Op& op) {
    const std::string_view name = op.name();
    if (name.starts_with("aten._fused_sgd")) return {{"self", "grads", "momentum_buffer_list"}, descent, false};
    if (name.starts_with("aten._fused_adagrad")) return {{"self", "grads", "state_sums"}, adagrad};
    return {{"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
            name.starts_with("aten._fused_adamw") ? adam<true> : adam<false>};
}
/// Whether the last list of the optimizer has tensors in this call.
bool usesLastList(const Decomposition& d) {
    if (d.op().schema()->find("momentum") >= 0) return d.real("momentum") != 0;
    return d.op().schema()->find("amsgrad") < 0 || d.flag("amsgrad");
}

/// Why the call is refused; empty if it is not.
std::string whyRefused(const Decomposition& d, const Optimizer& optimizer, const Lists& lists) {
    const auto& params = d.op().schema()->params;
    for (size_t i = 0; i < lists.size(); ++i) {
        const std::string name(optimizer.lists[i]);
        const bool used = i + 1 < lists.size() || usesLastList(d);
        if (lists[i].size() != (used ? lists[0].size() : 0))
            return "'" + name + "' needs " + (used ? "a tensor for each parameter" : "no tensors");
        for (size_t k = 0; k < lists[i].size(); ++k) {
            const TensorType &type = lists[i][k].type(), &own = lists[0][k].type();
            if (!isFloating(type.dtype) || type.dtype != own.dtype || !(type.sizes == own.sizes))
                return "'" + name + "' holds " + type.text() + " for the parameter " + own.text();
        }
    }
    for (const char* param : {"lr", "grad_scale", "found_inf"}) {
        const Node* node = d.arg(param).node();
        if (node && !(numel(node->tensor().sizes) == SymInt(1)))
            return "'" + std::string(param) + "' is " + node->tensor().text() + ", not one number";
    }
    if (!optimizer.counts) return {};
    const int at = d.op().schema()->find("state_steps");
    const auto counts = d.list(params[static_cast<size_t>(at)].name);
    if (counts.size() != lists[0].size()) return "'state_steps' needs a tensor for each parameter";
    for (const Value& count : counts)
        if (!isFloating(count.dtype()) || !(numel(count.sizes()) == SymInt(1)))
            return "'state_steps' holds " + count.type().text() + ", not one floating-point number";
    return {};
}
/// The lists after the step; nothing where the call is refused.
std::optional<Lists> stepped(Decomposition& d) {
    const Optimizer optimizer = optimizerOf(d.op());
    Lists lists;
    for (const std::string_view name : optimizer.lists) {
        if (!read(d, d.tensors(name))) return std::nullopt;
        lists.push_back(d.list(name));
    }
    if (std::string why = whyRefused(d, optimizer, lists); !why.empty()) {
        refuse(d, std::move(why));
        return std::nullopt;
    }
    const auto counts = optimizer.counts ? d.list("state_steps") : std::vector<Value>();
    const auto number = [](const Value& x) { return x.rank() == 0 ? x : reshape(x, {}); };
    const Value scale = d.has("grad_scale") ? number(d.in("grad_scale")) : Value();
    const Value overflowed = d.has("found_inf") ? compareScalar("eq", number(d.in("found_inf")), int64_t{1}) : Value();
    for (size_t k = 0; k < lists[0].size(); ++k) {
        std::vector<Value> old;
        for (const auto& list : lists)
            if (!list.empty()) old.push_back(toOpmath(list[k]));
        if (scale) old[1] = old[1] / scale;
        const Value count = optimizer.counts ? convert(convert(number(counts[k]), DType::F32), DType::F64) : Value();
        const std::vector<Value> fresh = optimizer.step(d, old, count);
        for (size_t i = 0; i < fresh.size(); ++i) {
            Value& at = lists[i][k];
            if (i == 1 && !scale) continue;  // gradients change only where grad_scale is divided out
            const Value rounded = convert(fresh[i], at.dtype());
            at = overflowed ? where(overflowed, at, rounded) : rounded;
        }
    }
    return lists;
}

Values inPlace(Decomposition& d) {
    const Optimizer optimizer = optimizerOf(d.op());
    const auto lists = stepped(d);
    if (!lists) return Value(d.builder(), nullptr);
    for (size_t i = 0; i < lists->size(); ++i) {
        const std::vector<Value> old = d.list(optimizer.lists[i]);
        for (size_t k = 0; k < old.size(); ++k)
            if ((*lists)[i][k].node() != old[k].node()) d.call("aten.copy_.default", {old[k], (*lists)[i][k]});
    }
    return Value(d.builder(), nullptr);
}
/// A result that is a list has to come from a call on lists: hence one _foreach_copy for each.
Values functional(Decomposition& d) {
    const Optimizer optimizer = optimizerOf(d.op());
    const auto lists = stepped(d);
    if (!lists) return Value(d.builder(), nullptr);
    const auto asList = [&](const std::vector<Value>& old, const std::vector<Value>& fresh) {
        if (old.empty()) return Value();
        std::vector<Argument> laidOut;
        for (const Value& one : old) {
            const bool dense = one.type().strides == preservedStrides(one.type());
            laidOut.emplace_back(dense ? one : unary("aten.clone.default", one));
        }
        return d.call("aten._foreach_copy.default",
                      {Argument(std::move(laidOut)), Argument(std::vector<Argument>(fresh.begin(), fresh.end()))});
    };
    std::vector<Value> results;
    for (size_t i = 0; i < lists->size(); ++i) results.push_back(asList(d.list(optimizer.lists[i]), (*lists)[i]));
    if (d.op().name() == "aten._fused_adagrad.default")
        results.push_back(asList(d.list("state_steps"), d.list("state_steps")));
    return results;
}
/// An empty list is a tuple of nothing.
Result<ValueType> inferLists(const InferContext& c) {
    CT_TRY(const ValueType type, inferExpanded(c));
    TupleType lists;
    for (const ValueType& list : *type.tuple()) lists.push_back(list.isNone() ? ValueType(TupleType()) : list);
    return ValueType(std::move(lists));
}

constexpr OpDef writtenRow(std::string_view schema, std::string_view samples) {
    OpDef row = shorthand(schema, inPlace, samples);
    row.tags = Tag::Impure;
    return row;
}
constexpr OpDef givenRow(std::string_view schema, std::string_view samples) {
    OpDef row = shorthand(schema, functional, samples);
    row.infer = inferLists;
    return row;
}

constexpr std::string_view kAdam = R"(
[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], [], [f32[]>0, f32[]>0], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.5, eps=1e-8, amsgrad=False, maximize=False
[f64[3]], [f64[3]], [f64[3]], [f64[3]>0], [f64[3]>0], [f32[]>0], lr=0.1, beta1=0.3, beta2=0.99, weight_decay=0.0, eps=1e-6, amsgrad=True, maximize=True
[bf16[3]], [bf16[3]], [bf16[3]], [bf16[3]>0], [], [f32[]>0], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-6, amsgrad=False, maximize=False
[f32[3]], [f32[3]], [f32[3]], [f32[3]>0], [], [f32[]>0], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-6, amsgrad=False, maximize=False, grad_scale=f32[]>0, found_inf=f32[]>0
)";
constexpr std::string_view kAdamTensor = R"(
[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], [], [f32[]>0, f32[]>0], lr=f32[]>0, beta1=0.9, beta2=0.99, weight_decay=0.5, eps=1e-8, amsgrad=False, maximize=False
)";
constexpr std::string_view kDescent = R"(
[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [], weight_decay=0.1, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=False
[f64[3]], [f64[3]], [f64[3]], weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.25, nesterov=False, maximize=True, is_first_step=False
[bf16[3]], [bf16[3]], [bf16[3]], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=False, is_first_step=True
[f32[3]], [f32[3]], [f32[3]], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=False, is_first_step=False, grad_scale=f32[]>0, found_inf=f32[]>0
)";
constexpr std::string_view kDescentTensor =
    "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2], f32[3, 4]], weight_decay=0.1, momentum=0.5, lr=f32[]>0, dampening=0.0, nesterov=False, maximize=False, is_first_step=False";
constexpr std::string_view kAdagrad = R"(
[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], [f32[]>0, f32[]>0], lr=0.1, lr_decay=0.5, weight_decay=0.1, eps=1e-8, maximize=False
[f64[3]], [f64[3]], [f64[3]>0], [f32[]>0], lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=True
[f32[3]], [f32[3]], [f32[3]>0], [f32[]>0], lr=0.1, lr_decay=0.5, weight_decay=0.0, eps=1e-8, maximize=False, grad_scale=f32[]>0, found_inf=f32[]>0
)";
constexpr std::string_view kAdagradTensor =
    "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], [f32[]>0, f32[]>0], lr=f32[]>0, lr_decay=0.5, weight_decay=0.1, eps=1e-8, maximize=False";

#define CUTAWAY_ADAM_LISTS(a, b, c, d, e)                                                                  \
    "Tensor" a "[] self, Tensor" b "[] grads, Tensor" c "[] exp_avgs, Tensor" d "[] exp_avg_sqs, Tensor" e \
    "[] max_exp_avg_sqs, Tensor[] state_steps, *, "
#define CUTAWAY_ADAM_NUMBERS                                                                                               \
    " lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, " \
    "Tensor? found_inf=None) -> "
#define CUTAWAY_ADAM_RESULTS                                                                             \
    "(Tensor[] self_out, Tensor[] grads_out, Tensor[] exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] " \
    "max_exp_avg_sqs_out)"
#define CUTAWAY_ADAM(name)                                                                                             \
    writtenRow("aten." name "_.default(" CUTAWAY_ADAM_LISTS("(a!)", "(b!)", "(c!)", "(d!)",                            \
                                                            "(e!)") "float" CUTAWAY_ADAM_NUMBERS "()",                 \
               kAdam),                                                                                                 \
        writtenRow("aten." name "_.tensor_lr(" CUTAWAY_ADAM_LISTS("(a!)", "(b!)", "(c!)", "(d!)",                      \
                                                                  "(e!)") "Tensor" CUTAWAY_ADAM_NUMBERS "()",          \
                   kAdamTensor),                                                                                       \
        givenRow("aten." name                                                                                          \
                 ".default(" CUTAWAY_ADAM_LISTS("", "", "", "", "") "float" CUTAWAY_ADAM_NUMBERS CUTAWAY_ADAM_RESULTS, \
                 kAdam),                                                                                               \
        givenRow("aten." name ".tensor_lr(" CUTAWAY_ADAM_LISTS("", "", "", "",                                         \
                                                               "") "Tensor" CUTAWAY_ADAM_NUMBERS CUTAWAY_ADAM_RESULTS, \
                 kAdamTensor)

constexpr OpDef kFusedOptimizersOps[] = {
    CUTAWAY_ADAM("_fused_adam"),
    CUTAWAY_ADAM("_fused_adamw"),
    writtenRow(
        "aten._fused_sgd_.default(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, "
        "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        kDescent),
    writtenRow(
        "aten._fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, "
        "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        kDescentTensor),
    givenRow(
        "aten._fused_sgd.default(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, "
        "bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, "
        "Tensor[] momentum_buffer_list_out)",
        kDescent),
    givenRow(
        "aten._fused_sgd.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, "
        "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, "
        "Tensor[] grads_out, Tensor[] momentum_buffer_list_out)",
        kDescentTensor),
    writtenRow(
        "aten._fused_adagrad_.default(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, float lr, float lr_decay, "
        "float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        kAdagrad),
    writtenRow(
        "aten._fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps, *, Tensor lr, float lr_decay, "
        "float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        kAdagradTensor),
    givenRow(
        "aten._fused_adagrad.default(Tensor[] self, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, *, float lr, float lr_decay, float weight_decay, "
        "float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] state_sums_out, "
        "Tensor[] state_steps_out)",
        kAdagrad),
    givenRow(
        "aten._fused_adagrad.tensor_lr(Tensor[] self, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, *, Tensor lr, float lr_decay, "
        "float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, "
        "Tensor[] state_sums_out)",
        kAdagradTensor),
};

}  // namespace

std::span<const OpDef> fusedOptimizerOps() { return kFusedOptimizersOps; }

}  // namespace cutaway
