#include "engine/session/tied_names.h"

#include <algorithm>

namespace cutaway {
namespace {

bool isSame(const Tensor& a, const Tensor& b) {
    return a.defined() && b.defined() && a.storage() == b.storage() && a.offset() == b.offset() &&
           a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

std::vector<std::string> tiedNames(const Module& opened, const std::string& name) {
    const auto it = opened.tensors.find(name);
    if (it == opened.tensors.end()) return {name};
    std::vector<std::string> names;
    const auto add = [&](const std::string& other) {
        const auto found = opened.tensors.find(other);
        if (found != opened.tensors.end() && isSame(found->second, it->second) &&
            std::find(names.begin(), names.end(), other) == names.end())
            names.push_back(other);
    };
    for (const InputSpec& spec : opened.inputs)  // in the order of registration
        if (spec.kind == InputSpec::Kind::Parameter || spec.kind == InputSpec::Kind::Buffer) add(spec.target);
    for (const auto& [other, tensor] : opened.tensors) add(other);
    return names;
}

}  // namespace cutaway
