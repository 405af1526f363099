// torch.nn.functional: activations and dropout.
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

/// softmax and its kin; without a dim PyTorch guesses one, with a warning.
Argument softmax(PythonCall& c, std::string_view packet, const Argument& input) {
    Argument dim = c["dim"];
    if (dim.isNone()) {
        const int64_t rank = c.tensor("input").rank();
        dim = Argument(rank == 0 || rank == 1 || rank == 3 ? 0 : 1);
    }
    if (c.given("dtype")) return c.aten(packet, {input, dim, c["dtype"]});
    return c.aten(packet, {input, dim});
}

Argument plain(PythonCall& c, std::string_view packet) { return c.atenInplace(packet, {c["input"]}); }

Argument dropout(PythonCall& c) {
    const double p = c.real("p");
    if (p < 0 || p > 1) return c.fail("the probability " + std::to_string(p) + " is not between 0 and 1");
    return c.atenInplace("dropout", {c["input"], Argument(p), Argument(c.flag("training"))});
}
/// Whole channels at a time. In evaluation every dropout is the identity.
Argument featureDropout(PythonCall& c, std::string_view packet) {
    if (!c.flag("training")) return c.atenInplace("dropout", {c["input"], Argument(c.real("p")), Argument(false)});
    return c.atenInplace(packet, {c["input"], Argument(c.real("p")), Argument(true)});
}

/// A choice by random numbers whose gradient is that of a softmax. A hard one is one at the largest and zero elsewhere.
Argument gumbelSoftmax(PythonCall& c) {
    const Argument &logits = c["logits"], &dim = c["dim"];
    const Argument noise = c.aten("neg", {c.aten("log", {c.aten("exponential", {c.aten("empty_like", {logits})})})});
    const Argument soft = c.aten("softmax", {c.aten("div", {c.aten("add", {logits, noise}), c["tau"]}), dim});
    if (!c.flag("hard")) return soft;
    const Argument largest = c.aten("argmax", {soft, dim, Argument(true)});
    const Argument chosen = c.aten("scatter", {c.aten("zeros_like", {logits}), dim, largest, Argument(1.0)});
    return c.aten("add", {c.aten("sub", {chosen, c.aten("detach", {soft})}), soft});
}

constexpr PythonFunction kActivationsFunctions[] = {
    {"torch.nn.functional.gumbel_softmax(Any logits, Any tau=1, bool hard=False, Any eps=1e-10, Any dim=-1) -> Any",
     gumbelSoftmax},
    {"torch.nn.functional.relu(Any input, bool inplace=False) -> Any", [](PythonCall& c) { return plain(c, "relu"); }},
    {"torch.nn.functional.relu6(Any input, bool inplace=False) -> Any",
     [](PythonCall& c) { return plain(c, "relu6"); }},
    {"torch.nn.functional.elu(Any input, Any alpha=1.0, bool inplace=False) -> Any",
     [](PythonCall& c) {
         return c.atenInplace("elu", {c["input"], c["alpha"]});
     }},
    {"torch.nn.functional.selu(Any input, bool inplace=False) -> Any", [](PythonCall& c) { return plain(c, "selu"); }},
    {"torch.nn.functional.celu(Any input, Any alpha=1.0, bool inplace=False) -> Any",
     [](PythonCall& c) {
         return c.atenInplace("celu", {c["input"], c["alpha"]});
     }},
    {"torch.nn.functional.leaky_relu(Any input, Any negative_slope=0.01, bool inplace=False) -> Any",
     [](PythonCall& c) {
         return c.atenInplace("leaky_relu", {c["input"], c["negative_slope"]});
     }},
    {"torch.nn.functional.silu(Any input, bool inplace=False) -> Any", [](PythonCall& c) { return plain(c, "silu"); }},
    {"torch.nn.functional.mish(Any input, bool inplace=False) -> Any", [](PythonCall& c) { return plain(c, "mish"); }},
    {"torch.nn.functional.hardswish(Any input, bool inplace=False) -> Any",
     [](PythonCall& c) { return plain(c, "hardswish"); }},
    {"torch.nn.functional.hardsigmoid(Any input, bool inplace=False) -> Any",
     [](PythonCall& c) { return plain(c, "hardsigmoid"); }},
    {"torch.nn.functional.hardtanh(Any input, Any min_val=-1.0, Any max_val=1.0, bool inplace=False) -> Any",
     [](PythonCall& c) {
         return c.atenInplace("hardtanh", {c["input"], c["min_val"], c["max_val"]});
     }},
    {"torch.nn.functional.threshold(Any input, Any threshold, Any value, bool inplace=False) -> Any",
     [](PythonCall& c) {
         return c.atenInplace("threshold", {c["input"], c["threshold"], c["value"]});
     }},
    {"torch.nn.functional.softsign(Any input) -> Any",
     [](PythonCall& c) {
         return c.aten("div", {c["input"], c.aten("add", {c.aten("abs", {c["input"]}), Argument(1)})});
     }},
    {"torch.nn.functional.tanhshrink(Any input) -> Any",
     [](PythonCall& c) {
         return c.aten("sub", {c["input"], c.aten("tanh", {c["input"]})});
     }},
    {"torch.nn.functional.softmax(Any input, Any dim=None, Any _stacklevel=3, Any dtype=None) -> Any",
     [](PythonCall& c) { return softmax(c, "softmax", c["input"]); }},
    {"torch.nn.functional.log_softmax(Any input, Any dim=None, Any _stacklevel=3, Any dtype=None) -> Any",
     [](PythonCall& c) { return softmax(c, "log_softmax", c["input"]); }},
    {"torch.nn.functional.softmin(Any input, Any dim=None, Any _stacklevel=3, Any dtype=None) -> Any",
     [](PythonCall& c) { return softmax(c, "softmax", c.aten("neg", {c["input"]})); }},
    {"torch.nn.functional.dropout(Any input, float p=0.5, bool training=True, bool inplace=False) -> Any", dropout},
    {"torch.nn.functional.dropout1d(Any input, float p=0.5, bool training=True, bool inplace=False) -> Any",
     [](PythonCall& c) { return featureDropout(c, "feature_dropout"); }},
    {"torch.nn.functional.dropout2d(Any input, float p=0.5, bool training=True, bool inplace=False) -> Any",
     [](PythonCall& c) { return featureDropout(c, "feature_dropout"); }},
    {"torch.nn.functional.dropout3d(Any input, float p=0.5, bool training=True, bool inplace=False) -> Any",
     [](PythonCall& c) { return featureDropout(c, "feature_dropout"); }},
    {"torch.nn.functional.alpha_dropout(Any input, float p=0.5, bool training=False, bool inplace=False) -> Any",
     [](PythonCall& c) { return featureDropout(c, "alpha_dropout"); }},
};

}  // namespace

std::span<const PythonFunction> activationFunctions() { return kActivationsFunctions; }

}  // namespace cutaway::torchcalls
