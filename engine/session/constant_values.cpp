#include "engine/session/constant_values.h"

#include <algorithm>
#include <cmath>

#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/recipe_graph.h"
#include "engine/rewrite/rewriter.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

constexpr size_t kBars = 24, kFirst = 8;

/// The name of the program's tensor that a node stands for, whether it is read as a constant or as an input.
std::optional<std::string> ownTensor(const Module& module, const Node& node) {
    if (node.kind() == NodeKind::GetAttr) return node.target();
    if (!node.isPlaceholder()) return std::nullopt;
    const std::vector<Node*> inputs = module.graph().placeholders();
    const auto at = static_cast<size_t>(std::find(inputs.begin(), inputs.end(), &node) - inputs.begin());
    if (at >= module.inputs.size() || module.inputs[at].isGiven() || module.inputs[at].target.empty())
        return std::nullopt;
    return module.inputs[at].target;
}

/// Whether all that the node is computed from is the program's own, or made from nothing.
bool dependsOnConstants(const Node& node) {
    std::vector<const Node*> pending = {&node};
    std::vector<bool> seen(node.graph().idLimit());
    bool constants = false;
    while (!pending.empty()) {
        const Node* next = pending.back();
        pending.pop_back();
        if (seen[index(next->id())]) continue;
        seen[index(next->id())] = true;
        if (next->kind() == NodeKind::GetAttr) constants = true;
        else if (!next->isCall() || !isPure(*next) || next->is(Tag::Random) || next->op().isOpaque()) return false;
        for (const Node* input : next->inputs()) pending.push_back(input);
    }
    return constants;
}

Result<Tensor> valueOf(const Module& module, const Node& node) {
    if (const auto name = ownTensor(module, node)) {
        return constantNamed(module, *name, node);
    }
    if (!node.type().tensor() || !dependsOnConstants(node))
        return Error{ErrorCode::NotFound, "its value depends on what the graph is given", node.name(), {}};
    return makeRecipe(recipeGraph(module, node))->value();
}

/// What the numbers of a tensor are like.
ValueSummary summaryOf(const Tensor& tensor) {
    ValueSummary summary;
    summary.elements = tensor.numel();
    const bool complex = isComplex(tensor.dtype());
    const Tensor packed = tensor.to(complex ? DType::C128 : DType::F64).contiguous();
    const auto at = [&](int64_t i) {
        return complex ? std::abs(packed.as<std::complex<double>>()[i]) : packed.as<double>()[i];
    };
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < summary.elements; ++i) {
        const double value = at(i);
        if (static_cast<size_t>(i) < kFirst) summary.first.push_back(value);
        if (!std::isfinite(value)) {
            ++summary.notFinite;
            continue;
        }
        summary.zeros += value == 0 ? 1 : 0;
        summary.least = finite == 0 ? value : std::min(summary.least, value);
        summary.most = finite == 0 ? value : std::max(summary.most, value);
        sum += value;
        ++finite;
    }
    if (finite == 0) return summary;
    summary.mean = sum / static_cast<double>(finite);
    const double width = summary.most - summary.least;
    if (!(width > 0) || !std::isfinite(width)) return summary;
    summary.histogram.assign(kBars, 0);
    for (int64_t i = 0; i < summary.elements; ++i)
        if (const double value = at(i); std::isfinite(value))
            ++summary.histogram[std::min(kBars - 1, static_cast<size_t>((value - summary.least) / width * kBars))];
    return summary;
}

/// Of the tensors that a recipe reads, in its order.
Result<std::vector<ValueSummary>> sourcesOf(const Module& recipe, const Progress& progress) {
    std::vector<ValueSummary> sources;
    const std::vector<std::string> missing = tensorsWithoutData(recipe);
    for (const Node& node : recipe.graph().nodes()) {
        if (node.kind() != NodeKind::GetAttr) continue;
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "reading the constant was cancelled", {}, {}};
        CT_TRY(const Tensor tensor, constantNamed(recipe, node.target(), node));
        sources.push_back(summaryOf(tensor));
        sources.back().madeUp = std::binary_search(missing.begin(), missing.end(), node.target());
    }
    return sources;
}

}  // namespace

std::optional<ConstantInfo> constantInfo(const Module& module, const Node& node) {
    const auto name = ownTensor(module, node);
    const TensorType* type = node.type().tensor();
    if (!name || type == nullptr) return std::nullopt;
    ConstantInfo info;
    if (allInts(type->sizes)) info.bytes = numel(toInts(type->sizes)) * byteSize(type->dtype);
    const auto recipe = module.recipes.find(*name);
    if (node.isPlaceholder() || recipe == module.recipes.end()) {
        info.sources.emplace_back(*name, node.type().text());
        return info;
    }
    info.shared = recipe->second->isView();
    const Graph& graph = recipe->second->graph().graph();
    for (const Node& step : graph.nodes()) {
        if (step.kind() == NodeKind::GetAttr) info.sources.emplace_back(step.target(), step.type().text());
        if (step.isCall())
            info.recipe.push_back(step.name() + ": \"" + step.type().text() + "\" = " + printExpression(step));
    }
    return info;
}

Result<ValueSummary> constantValues(const Module& module, const Node& node, const Progress& progress) {
    CT_TRY(const Tensor tensor, valueOf(module, node));
    ValueSummary summary = summaryOf(tensor);
    const auto name = ownTensor(module, node);
    const std::vector<std::string> missing = tensorsWithoutData(module);
    summary.madeUp = name && std::binary_search(missing.begin(), missing.end(), *name);
    const auto recipe = name ? module.recipes.find(*name) : module.recipes.end();
    if (recipe == module.recipes.end()) return summary;
    CT_TRY(summary.sources, sourcesOf(recipe->second->graph(), progress));
    summary.madeUp = std::any_of(summary.sources.begin(), summary.sources.end(),
                                 [](const ValueSummary& source) { return source.madeUp; });
    return summary;
}

}  // namespace cutaway
