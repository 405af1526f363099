#include "engine/session/run_inputs.h"

#include <map>

#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"

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

double relativeTolerance(DType dtype) {
    switch (dtype) {
        case DType::F64: case DType::C128: return 1e-9;
        case DType::F16: return 2e-3;
        case DType::BF16: return 1.6e-2;
        default: return isFloating(dtype) || isComplex(dtype) ? 1e-5 : 0;
    }
}

}  // namespace cutaway
