// torch.nn.functional: losses. Python spells the reduction as a word, ATen as a number.
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

/// size_average and reduce are the old spelling of the same.
Argument reduction(PythonCall& c) {
    std::string word = c.text("reduction");
    if (c.given("size_average") || c.given("reduce")) {
        const bool average = !c.given("size_average") || c.flag("size_average"),
                   reduce = !c.given("reduce") || c.flag("reduce");
        word = !reduce ? "none" : average ? "mean" : "sum";
    }
    if (word == "none") return Argument(0);
    if (word == "mean") return Argument(1);
    if (word == "sum") return Argument(2);
    return c.fail("the reduction '" + word + "'", {"use none, mean or sum"});
}

/// Both operands in their common shape, as these functions do before they call ATen.
std::pair<Argument, Argument> broadcast(PythonCall& c) {
    const TensorType input = c.tensor("input"), target = c.tensor("target");
    if (c.failed() || input.sizes == target.sizes) return {c["input"], c["target"]};
    const std::array<SymDims, 2> both = {input.sizes, target.sizes};
    auto sizes = broadcastSizes(both);
    if (!sizes) {
        c.fail(sizes.error().message);
        return std::pair<Argument, Argument>();
    }
    return {c.aten("expand", {c["input"], Argument(*sizes)}), c.aten("expand", {c["target"], Argument(*sizes)})};
}
Argument elementwise(PythonCall& c, std::string_view packet, std::optional<Argument> extra = {}) {
    auto [input, target] = broadcast(c);
    std::vector<Argument> args = {input, target, reduction(c)};
    if (extra) args.push_back(*extra);
    return c.aten(packet, std::move(args));
}

Argument mse(PythonCall& c) {
    if (c.given("weight"))
        return c.fail("a weight", {"multiply the unreduced loss (reduction='none') with the weight"});
    return elementwise(c, "mse_loss");
}

Argument klDiv(PythonCall& c) {
    const Argument logTarget(c.flag("log_target"));
    if (c.text("reduction") == "batchmean") {
        const Argument total = c.aten("kl_div", {c["input"], c["target"], Argument(2)}, {{"log_target", logTarget}});
        const TensorType type = c.tensor("input");
        return type.rank() == 0 ? total : c.aten("div", {total, Argument(type.sizes[0])});
    }
    return c.aten("kl_div", {c["input"], c["target"], reduction(c)}, {{"log_target", logTarget}});
}

Argument reduced(PythonCall& c, const Argument& loss) {
    const auto how = reduction(c).asInt();
    return how == 1 ? c.aten("mean", {loss}) : how == 2 ? c.aten("sum", {loss}) : loss;
}

/// A yes or no for each class: the mean over the classes of -(t log s(x) + (1 - t) log s(-x)).
Argument multilabelSoftMargin(PythonCall& c) {
    const TensorType type = c.tensor("input");
    if (c.failed()) return {};
    if (type.rank() == 0) return c.fail("the input has no dim of classes");
    const Argument &x = c["input"], &t = c["target"];
    const Argument yes = c.aten("mul", {t, c.aten("log_sigmoid", {x})}),
                   no = c.aten("mul", {c.aten("rsub", {t, Argument(1)}), c.aten("log_sigmoid", {c.aten("neg", {x})})});
    Argument loss = c.aten("neg", {c.aten("add", {yes, no})});
    if (c.given("weight")) loss = c.aten("mul", {loss, c["weight"]});
    const int64_t classes = type.rank() - 1;
    loss = c.aten("sum", {loss, Argument(std::vector<Argument>{Argument(classes)})});
    return reduced(c, c.aten("div", {loss, Argument(type.sizes[static_cast<size_t>(classes)])}));
}

constexpr PythonFunction kLossesFunctions[] = {
    {"torch.nn.functional.multilabel_soft_margin_loss(Any input, Any target, Any weight=None, Any size_average=None, Any reduce=None, "
     "Any reduction='mean') -> Any",
     multilabelSoftMargin},
    {"torch.nn.functional.poisson_nll_loss(Any input, Any target, bool log_input=True, bool full=False, Any size_average=None, Any eps=1e-08, "
     "Any reduce=None, Any reduction='mean') -> Any",
     [](PythonCall& c) {
         return c.aten("poisson_nll_loss", {c["input"], c["target"], Argument(c.flag("log_input")),
                                            Argument(c.flag("full")), c["eps"], reduction(c)});
     }},
    {"torch.nn.functional.cross_entropy(Any input, Any target, Any weight=None, Any size_average=None, Any ignore_index=-100, Any reduce=None, "
     "Any reduction='mean', float label_smoothing=0.0) -> Any",
     [](PythonCall& c) {
         return c.aten("cross_entropy_loss",
                       {c["input"], c["target"], c["weight"], reduction(c), c["ignore_index"], c["label_smoothing"]});
     }},
    {"torch.nn.functional.nll_loss(Any input, Any target, Any weight=None, Any size_average=None, Any ignore_index=-100, Any reduce=None, "
     "Any reduction='mean') -> Any",
     [](PythonCall& c) {
         return c.aten("nll_loss_nd", {c["input"], c["target"], c["weight"], reduction(c), c["ignore_index"]});
     }},
    {"torch.nn.functional.mse_loss(Any input, Any target, Any size_average=None, Any reduce=None, Any reduction='mean', Any weight=None) -> Any",
     mse},
    {"torch.nn.functional.l1_loss(Any input, Any target, Any size_average=None, Any reduce=None, Any reduction='mean', Any weight=None) -> Any",
     [](PythonCall& c) {
         return c.given("weight") ? c.fail("a weight", {"weigh the unreduced loss"}) : elementwise(c, "l1_loss");
     }},
    {"torch.nn.functional.smooth_l1_loss(Any input, Any target, Any size_average=None, Any reduce=None, Any reduction='mean', "
     "float beta=1.0) -> Any",
     [](PythonCall& c) {
         return c.real("beta") == 0 ? elementwise(c, "l1_loss") : elementwise(c, "smooth_l1_loss", c["beta"]);
     }},
    {"torch.nn.functional.huber_loss(Any input, Any target, Any reduction='mean', Any delta=1.0, Any weight=None, Any size_average=None, "
     "Any reduce=None) -> Any",
     [](PythonCall& c) { return elementwise(c, "huber_loss", c["delta"]); }},
    {"torch.nn.functional.binary_cross_entropy(Any input, Any target, Any weight=None, Any size_average=None, Any reduce=None, "
     "Any reduction='mean') -> Any",
     [](PythonCall& c) {
         return c.aten("binary_cross_entropy", {c["input"], c["target"], c["weight"], reduction(c)});
     }},
    {"torch.nn.functional.binary_cross_entropy_with_logits(Any input, Any target, Any weight=None, Any size_average=None, Any reduce=None, "
     "Any reduction='mean', Any pos_weight=None) -> Any",
     [](PythonCall& c) {
         return c.aten("binary_cross_entropy_with_logits",
                       {c["input"], c["target"], c["weight"], c["pos_weight"], reduction(c)});
     }},
    {"torch.nn.functional.kl_div(Any input, Any target, Any size_average=None, Any reduce=None, Any reduction='mean', bool log_target=False) -> Any",
     klDiv},
    {"torch.nn.functional.cosine_embedding_loss(Any input1, Any input2, Any target, float margin=0.0, Any size_average=None, Any reduce=None, "
     "Any reduction='mean') -> Any",
     [](PythonCall& c) {
         return c.aten("cosine_embedding_loss", {c["input1"], c["input2"], c["target"], c["margin"], reduction(c)});
     }},
};

}  // namespace

std::span<const PythonFunction> lossFunctions() { return kLossesFunctions; }

}  // namespace cutaway::torchcalls
