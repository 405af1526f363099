#include "engine/ir/live_nodes.h"
#include "engine/passes/pre_grad/split_cat.h"
#include "engine/passes/pre_grad/split_parts.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using namespace pregrad;

constexpr std::string_view kRule = "normalization_pass";

/// A call's normal form: the function, arguments and keywords that normalizationPass writes for it.
struct Normal {
    std::string_view function;
    std::vector<Argument> args;
    NamedArguments keywords;
};

bool isNormal(const Node& node, const Normal& normal) {
    if (node.op().style() != Op::Style::Function || node.op().name() != normal.function ||
        node.args().size() != normal.args.size() || node.kwargs().size() != normal.keywords.size())
        return false;
    for (size_t i = 0; i < normal.args.size(); ++i)
        if (!equal(node.arg(i), normal.args[i])) return false;
    for (size_t i = 0; i < normal.keywords.size(); ++i)
        if (node.kwargs()[i].first != normal.keywords[i].first ||
            !equal(node.kwargs()[i].second, normal.keywords[i].second))
            return false;
    return true;
}

/// Why a call stays as it is written.
std::nullopt_t noTensor(const Node* input, const Refusing& no) {
    no.about(input, "its operand, ", NodeWithKind{input}, ", is not known to be a tensor");
    return std::nullopt;
}
std::nullopt_t noDim(const Argument* dim, const Refusing& no) {
    no("its dim, ", dim ? *dim : Argument(), ", is not a number in range");
    return std::nullopt;
}
std::nullopt_t noSizes(const Refusing& no) {
    no("its sizes are not all numbers");
    return std::nullopt;
}

std::optional<Normal> spelledSplit(const Node& node, const Refusing& no) {
    Node* input = operand(node, 0, "tensor");
    if (!tensorType(input)) return noTensor(input, no);
    const auto sizes = splitSizes(node);
    const Argument* written = argument(node, 2, "dim");
    const auto dim = wrappedDim(written, tensorType(input)->rank());
    if (!dim) return noDim(written, no);
    if (!sizes) return noSizes(no);
    return Normal{"torch.functional.split", {Argument(input), Argument(*sizes)}, {{"dim", *dim}}};
}
std::optional<Normal> normalUnbind(const Node& node, const Refusing& no) {
    Node* input = operand(node, 0, "input");
    if (!tensorType(input)) return noTensor(input, no);
    const Argument* dim = argument(node, 1, "dim");
    if (!dim) dim = argument(node, 9, "axis");
    const auto wrapped = wrappedDim(dim, tensorType(input)->rank());
    if (!wrapped) return noDim(dim, no);
    return Normal{"torch.unbind", {Argument(input)}, {{"dim", *wrapped}}};
}
std::optional<Normal> normalJoin(const Node& node, std::string_view function, const Refusing& no) {
    const Argument* tensors = argument(node, 0, "tensors");
    const Argument* dim = argument(node, 1, "dim");
    if (!dim) dim = argument(node, 9, "axis");
    if (!tensors || !tensors->list()) {
        no("its tensors are not written as a list");
        return std::nullopt;
    }
    for (const Argument& item : *tensors->list())
        if (!tensorType(item.node())) return noTensor(item.node(), no);
    if (!tensorType(&node)) {
        no("its own type is not known");
        return std::nullopt;
    }
    const auto wrapped = wrappedDim(dim, tensorType(&node)->rank());
    if (!wrapped) return noDim(dim, no);
    return Normal{function, {*tensors}, {{"dim", *wrapped}}};
}
std::optional<Normal> normalSqueeze(const Node& node) {
    Argument dim;
    if (const Argument* named = argument(node, 99, "dim")) dim = *named;
    else if (node.args().size() == 2) dim = node.arg(1);
    else if (node.args().size() > 2) dim = Argument(ArgumentList{{node.args().begin() + 1, node.args().end()}, true});
    if (dim.list() && dim.list()->size() == 1) {
        const Argument only = (*dim.list())[0];
        dim = only;
    }
    Normal out{"torch.squeeze", {node.arg(0)}, {}};
    if (!dim.isNone()) out.keywords.emplace_back("dim", dim);
    return out;
}
std::optional<Normal> normalReshape(const Node& node, const Refusing& no) {
    const auto sizes = knownSizes(&node);
    if (!sizes) return noSizes(no);
    ArgumentList shape{{sizes->begin(), sizes->end()}, true};
    return Normal{"torch.reshape", {node.arg(0), Argument(std::move(shape))}, {}};
}
std::optional<Normal> normalClamp(const Node& node, const Refusing& no) {
    if (!knownSizes(&node)) return noSizes(no);
    Normal out{"torch.clamp", {node.arg(0)}, node.kwargs()};
    if (node.args().size() > 1) {
        const auto value = [&](size_t position, std::string_view name) {
            const Argument* found = argument(node, position, name);
            return found ? *found : Argument();
        };
        out.keywords = {{"min", value(1, "min")}, {"max", value(2, "max")}};
    }
    return out;
}

std::optional<Normal> normalForm(const Node& node, const Refusing& no) {
    if (!node.isCall()) return std::nullopt;
    if (node.args().empty() && !isFunction(node, {"torch.cat", "torch.concat", "torch.stack"})) {
        no("its operand is passed by name");
        return std::nullopt;
    }
    if (isFunction(node, {"torch.split", "torch.functional.split"}) || isMethod(node, "split"))
        return spelledSplit(node, no);
    if (isFunction(node, {"torch.unbind"}) || isMethod(node, "unbind")) return normalUnbind(node, no);
    if (isFunction(node, {"torch.cat", "torch.concat"})) return normalJoin(node, "torch.cat", no);
    if (isFunction(node, {"torch.stack"})) return normalJoin(node, "torch.stack", no);
    if (isMethod(node, "squeeze")) return normalSqueeze(node);
    if (isMethod(node, "reshape")) return normalReshape(node, no);
    if (isMethod(node, "clamp") || isFunction(node, {"torch.clamp"})) return normalClamp(node, no);
    if (isMethod(node, "detach"))
        return knownSizes(&node) ? std::optional(Normal{"torch.detach", node.args(), {}}) : noSizes(no);
    return std::nullopt;
}

Result<bool> normalize(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        const Refusing no(rewriter, kRule, *node);
        auto normal = normalForm(*node, no);
        if (!normal || (isNormal(*node, *normal) && !no("it is in this form already"))) continue;
        if (rewriter.begin(kRule, *node, "the same call in the spelling that the split and cat passes look for") !=
            Go::Yes)
            return changed;
        rewriteCall(*node, normal->function, std::move(normal->args), std::move(normal->keywords));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> normalizationPass(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, normalize); }

}  // namespace cutaway
