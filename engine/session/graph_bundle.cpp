#include "engine/session/graph_bundle.h"

#include <filesystem>
#include <unordered_map>

#include "engine/formats/folder.h"
#include "engine/formats/torch_save_writer.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/support/files.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr const char *kModule = "module.py", *kInit = "__init__.py", *kState = "state_dict.pt",
                     *kBundleGraph = "graph.py", *kInputs = "inputs.safetensors", *kRequest = "request.txt";

/// A folder of ours, an empty one, or none: never anything else of the user's.
Result<void> prepare(const std::string& folder) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_empty(folder, error) && !fs::exists(fs::path(folder) / kRequest, error))
        return Error{ErrorCode::InvalidInput,
                     "the folder holds something else",
                     folder,
                     {"name one that is empty or does not exist"}};
    fs::create_directories(folder, error);
    if (error) return Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder, {}};
    return {};
}

std::string argumentText(const Argument& argument, const std::unordered_map<const Node*, size_t>& numbers) {
    if (const Node* node = argument.node()) return "%" + std::to_string(numbers.at(node));
    if (const auto* items = argument.list()) {
        std::string out = "[";
        for (const Argument& item : *items) out += argumentText(item, numbers) + ",";
        return out + "]";
    }
    return printArgument(argument);
}

std::vector<std::string> linesOf(const Module& module) {
    std::unordered_map<const Node*, size_t> numbers;
    std::vector<std::string> lines;
    for (const Node& node : module.graph().nodes()) {
        std::string line = node.isCall()                          ? node.op().name()
                           : node.kind() == NodeKind::GetAttr     ? "attribute " + node.target()
                           : node.kind() == NodeKind::Placeholder ? std::string("input")
                                                                  : std::string("output");
        for (const Argument& arg : node.args()) line += " " + argumentText(arg, numbers);
        for (const auto& [key, arg] : node.kwargs()) line += " " + key + "=" + argumentText(arg, numbers);
        if (const TensorType* type = node.type().tensor(); type && node.isCall()) {
            line += " -> " + std::string(info(type->dtype).abbreviation) + "[";
            for (const SymInt& size : type->sizes) line += size.text() + ",";
            line += "]";
        }
        numbers.emplace(&node, numbers.size());
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace

Result<std::shared_ptr<Module>> withOwnTensors(const Module& module) {
    CT_TRY(const Snapshot complete, withConstants(module, {}));
    auto copy = std::make_shared<Module>(complete ? *complete : module);
    Graph& graph = copy->graph();
    for (const Node& node : graph.nodes()) {
        if (node.kind() != NodeKind::GetAttr || copy->tensors.contains(node.target())) continue;
        CT_TRY(copy->tensors[node.target()], attributeOf(*copy, node));
    }
    const std::vector<Node*> inputs = graph.placeholders();
    std::vector<InputSpec> given;
    Node* first = graph.first();
    while (first != nullptr && first->isPlaceholder()) first = first->next();
    for (size_t i = 0; i < inputs.size(); ++i) {
        const InputSpec spec = i < copy->inputs.size() ? copy->inputs[i] : InputSpec{};
        const bool owned = spec.kind == InputSpec::Kind::Parameter || spec.kind == InputSpec::Kind::Buffer ||
                           spec.kind == InputSpec::Kind::Constant;
        if (!owned) {
            given.push_back(spec);
            continue;
        }
        if (!copy->tensors.contains(spec.target) || !copy->tensors.at(spec.target).defined()) {
            CT_TRY(copy->tensors[spec.target], constantNamed(*copy, spec.target, *inputs[i]));
        }
        const std::string name = inputs[i]->name();
        Node& attribute = graph.getAttr(spec.target, inputs[i]->type(), first, name + "_");
        graph.replaceUses(*inputs[i], attribute);
        graph.erase(*inputs[i]);
        graph.rename(attribute, name);
    }
    copy->inputs = std::move(given);
    return copy;
}

Result<std::vector<std::string>> writeBundle(const std::string& folder, const GraphBundle& bundle) {
    const Module& module = *bundle.module;
    CT_TRY_VOID(checkRunnable(module));
    CT_TRY_VOID(prepare(folder));
    const auto in = [&](const char* name) { return (fs::path(folder) / name).string(); };
    NamedTensors state;
    for (const Node& node : module.graph().nodes())
        if (node.kind() == NodeKind::GetAttr &&
            std::none_of(state.begin(), state.end(), [&](const auto& one) { return one.first == node.target(); }))
            state.emplace_back(node.target(), module.tensors.at(node.target()));
    PrintOptions python;
    python.runnable = true;
    python.stateDict = fs::absolute(in(kState)).lexically_normal().string();
    CT_TRY_VOID(writeFile(in(kRequest), bundle.request + "\n"));
    CT_TRY_VOID(writeStateDict(in(kState), state));
    CT_TRY_VOID(writeFile(in(kModule), printText(module, python).text));
    CT_TRY_VOID(writeFile(in(kInit), "from .module import *\n"));
    CT_TRY_VOID(writeFile(in(kBundleGraph), printText(module).text));
    SafeTensors inputs;
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < std::min(placeholders.size(), bundle.inputs.size()); ++i)
        if (bundle.inputs[i].defined()) inputs.tensors.emplace_back(placeholders[i]->name(), bundle.inputs[i]);
    CT_TRY_VOID(writeSafeTensors(in(kInputs), inputs));
    return std::vector<std::string>{kModule, kInit, kState, kBundleGraph, kInputs, kRequest};
}

Result<std::shared_ptr<Module>> readBundle(const std::string& folder) {
    CT_TRY(const FileTree tree, listFolder(folder));
    CT_TRY(OpenedFile opened, readFolder(tree, folder, {}));
    return std::shared_ptr<Module>(std::move(opened.graphs.front().module));
}

std::string structuralDifference(const Module& a, const Module& b) {
    const std::vector<std::string> left = linesOf(a), right = linesOf(b);
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
        if (left[i] != right[i]) return "node " + std::to_string(i + 1) + ": " + left[i] + " became " + right[i];
    if (left.size() == right.size()) return {};
    return std::to_string(left.size()) + " nodes became " + std::to_string(right.size());
}

}  // namespace cutaway
