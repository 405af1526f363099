#include "engine/session/arguments.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/session/halves.h"
#include "engine/session/run_inputs.h"

namespace cutaway {
namespace {

bool isGiven(const Module& module, size_t position) {
    return position >= module.inputs.size() || module.inputs[position].isGiven();
}

size_t givenInputs(const Module& module) {
    size_t given = 0;
    for (size_t i = 0; i < module.graph().placeholders().size(); ++i) given += isGiven(module, i) ? 1 : 0;
    return given;
}

bool isAdded(const InputSpec& input) {
    using Kind = InputSpec::Kind;
    return input.kind == Kind::Tangent || input.kind == Kind::Saved || input.kind == Kind::ForwardTangent;
}
/// The names of a graph's inputs, but for those that differentiation adds to what was opened.
std::unordered_set<std::string> inputNames(const Module& opened, const Module& module) {
    const bool all = std::any_of(opened.inputs.begin(), opened.inputs.end(), isAdded);
    std::unordered_set<std::string> names;
    const std::vector<Node*> inputs = module.graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i)
        if (all || i >= module.inputs.size() || !isAdded(module.inputs[i])) names.insert(inputs[i]->name());
    return names;
}

/// Adds to `found`, by name, the constants of the graph that freezing made of these arguments.
void addConstantsOf(const Module& module, const std::map<NodeId, Tensor>& arguments,
                    std::map<std::string, Tensor>& found) {
    for (const Node& node : module.graph().nodes()) {
        if (node.kind() != NodeKind::GetAttr || module.recipes.contains(node.target())) continue;
        for (const NodeId origin : node.provenance().origin)
            if (const auto given = arguments.find(origin); given != arguments.end())
                found.emplace(node.target(), given->second);
    }
}

/// The graph with these values of its constants, whether it reads them or recipes do.
Snapshot withValuesOf(const Module& graph, const std::map<NodeId, Tensor>& arguments) {
    auto copy = std::make_shared<Module>(graph);
    std::map<std::string, Tensor> values;
    addConstantsOf(graph, arguments, values);
    for (const auto& [name, value] : values) copy->tensors[name] = value;
    for (auto& [name, recipe] : copy->recipes) {
        std::map<std::string, Tensor> read;
        addConstantsOf(recipe->graph(), arguments, read);
        if (read.empty()) continue;
        auto fed = std::make_shared<Module>(recipe->graph());
        for (const auto& [constant, value] : read) fed->tensors[constant] = value;
        recipe = makeRecipe(std::move(fed));
    }
    return copy;
}

}  // namespace

std::vector<size_t> preservedArguments(const Module& opened, const Module& graph) {
    const std::unordered_set<std::string> taken = inputNames(opened, graph);
    const std::vector<Node*> arguments = opened.graph().placeholders();
    std::vector<size_t> preserved;
    // Freezing keeps the names of what it keeps; what names inputs anew, as differentiation does, drops none.
    for (size_t i = 0; i < arguments.size(); ++i)
        if (taken.size() >= arguments.size() || taken.contains(arguments[i]->name())) preserved.push_back(i);
    return preserved;
}

Result<CalledGraph> calledWith(const Module& opened, const Snapshot& graph, std::vector<Tensor> user) {
    const std::vector<size_t> preserved = preservedArguments(opened, *graph);
    const std::vector<Node*> arguments = opened.graph().placeholders();
    if (preserved.size() == arguments.size()) return CalledGraph{graph, std::move(user)};
    const auto given = static_cast<std::ptrdiff_t>(std::min(givenInputs(opened), user.size()));
    CT_TRY(const std::vector<Tensor> bound, bindInputs(opened, {user.begin(), user.begin() + given}));
    std::map<NodeId, Tensor> frozen;
    std::vector<Tensor> passed;
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (!isGiven(opened, i)) continue;
        if (std::binary_search(preserved.begin(), preserved.end(), i)) passed.push_back(bound[i]);
        else if (bound[i].defined()) frozen.emplace(arguments[i]->id(), laidOut(bound[i], *arguments[i]));
    }
    std::move(user.begin() + given, user.end(), std::back_inserter(passed));
    return CalledGraph{frozen.empty() ? graph : withValuesOf(*graph, frozen), std::move(passed)};
}

Result<CalledGraph> calledFor(const Snapshot& graph, const Session::State& state, const std::string& path) {
    CT_TRY(std::vector<Tensor> values, randomInputs(*graph, 0));
    CT_TRY(RunInputs given, chooseInputs(*state.input, state.sampleInputs, path));
    CT_TRY(CalledGraph called, calledWith(*state.input, graph, std::move(given.user)));
    if (called.user.size() > values.size())
        return invalidInput("the file has " + std::to_string(called.user.size()) + " tensors, the graph takes " +
                                std::to_string(values.size()),
                            path);
    std::move(called.user.begin(), called.user.end(), values.begin());
    CT_TRY(called.user, bindInputs(*called.graph, values));
    return called;
}

}  // namespace cutaway
