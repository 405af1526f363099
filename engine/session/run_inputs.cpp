#include "engine/session/run_inputs.h"

#include <algorithm>
#include <map>

#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"

namespace cutaway {
namespace {

bool isUserInput(const Module& module, size_t position) {
    if (position >= module.inputs.size()) return true;
    const auto kind = module.inputs[position].kind;
    return kind == InputSpec::Kind::UserInput || kind == InputSpec::Kind::Tangent;
}

/// Names of the user inputs, in order.
std::vector<std::string> userInputNames(const Module& module) {
    std::vector<std::string> names;
    const auto placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i)
        if (isUserInput(module, i)) names.push_back(placeholders[i]->name());
    return names;
}

}  // namespace

Result<std::vector<Tensor>> readTensors(const std::string& path, const std::vector<std::string>& names) {
    CT_TRY(SafeTensors file, readSafeTensors(path));
    std::map<std::string, Tensor> byName(file.tensors.begin(), file.tensors.end());
    std::vector<Tensor> tensors;
    if (!names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) { return byName.contains(name); })) {
        for (const std::string& name : names) tensors.push_back(byName[name]);
        return tensors;
    }
    for (auto& [name, tensor] : byName) tensors.push_back(std::move(tensor));
    return tensors;
}

Result<RunInputs> chooseInputs(const Module& module, const std::vector<Tensor>& samples, const std::string& path) {
    if (!path.empty()) {
        CT_TRY(std::vector<Tensor> tensors, readTensors(path, userInputNames(module)));
        return RunInputs{std::move(tensors), path};
    }
    if (!samples.empty()) return RunInputs{samples, "sample inputs of the file"};
    CT_TRY(std::vector<Tensor> tensors, randomInputs(module, 0));
    return RunInputs{std::move(tensors), "random, seed 0"};
}

Result<Snapshot> withValues(const Module& module, const std::string& path, std::vector<Tensor>& user) {
    CT_TRY(const SafeTensors file, readSafeTensors(path));
    auto fixed = std::make_shared<Module>(module);
    Graph& graph = fixed->graph();
    const auto placeholders = graph.placeholders();
    Node* after = placeholders.empty() ? graph.first() : placeholders.back()->next();
    for (const auto& [name, tensor] : file.tensors) {
        Node* node = graph.findByName(name);
        if (!node || node->kind() != NodeKind::Call)
            return Error{ErrorCode::InvalidInput, "the graph that runs has no node '" + name + "' to give a value to", path,
                         {"cutaway-cli compile MODEL --dump DIR writes that graph; a pass may have replaced the node"}};
        const TensorType* type = node->type().tensor();
        const TensorType given = TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes()));
        if (!type || type->dtype != given.dtype || (freeSymbols(module).empty() && type->sizes != given.sizes))
            return invalidInput("node '" + name + "' is " + node->type().text() + ", its value in the file is " + given.text(), path);
        Node& input = graph.placeholder(name, node->type(), after);
        graph.replaceUses(*node, input);
        if (after == node) after = node->next();
        graph.erase(*node);
        fixed->inputs.resize(graph.placeholders().size());
        user.push_back(tensor);
    }
    return Snapshot(std::move(fixed));
}

double relativeTolerance(DType dtype) {
    switch (dtype) {
        case DType::F64: case DType::C128: return 1e-9;
        case DType::F16: return 2e-3;
        case DType::BF16: return 1.6e-2;
        default: return isFloating(dtype) || isComplex(dtype) ? 1e-5 : 0;
    }
}

}  // namespace cutaway
