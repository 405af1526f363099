#include "engine/session/written_values.h"

#include <algorithm>

#include "engine/ops/alias.h"
#include "engine/session/tied_names.h"

namespace cutaway {
namespace {

bool writesBack(const OutputSpec& spec) {
    return spec.kind == OutputSpec::Kind::BufferMutation || spec.kind == OutputSpec::Kind::ParameterMutation ||
           spec.kind == OutputSpec::Kind::InputMutation;
}

/// As the file calls it.
std::string inputName(const Module& module, const Node& placeholder, size_t position) {
    if (position < module.inputs.size() && !module.inputs[position].isGiven() &&
        !module.inputs[position].target.empty())
        return module.inputs[position].target;
    const std::string& source = placeholder.provenance().sourceName;
    return source.empty() ? placeholder.name() : source;
}

}  // namespace

std::vector<WrittenValue> writtenValues(const Module& module, const std::set<std::string>& taken) {
    std::vector<WrittenValue> values;
    std::set<std::string> names = taken;
    const auto add = [&](std::string name, bool result, size_t position) {
        while (!names.insert(name).second) name += ".new";
        values.push_back({std::move(name), result, position});
    };
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < module.outputs.size(); ++i) {
        if (!writesBack(module.outputs[i])) continue;
        const std::string& target = module.outputs[i].target;
        const auto input = std::find_if(placeholders.begin(), placeholders.end(),
                                        [&](const Node* node) { return node->name() == target; });
        const auto at = static_cast<size_t>(input - placeholders.begin());
        add(input != placeholders.end() ? inputName(module, **input, at) : target, true, i);
    }
    const std::vector<bool> written = writtenNodes(module.graph());
    for (size_t i = 0; i < placeholders.size(); ++i)
        if (written[index(placeholders[i]->id())]) add(inputName(module, *placeholders[i], i), false, i);
    return values;
}

std::set<std::string> namesOf(const std::vector<WrittenValue>& values, const Module& opened) {
    std::set<std::string> names;
    for (const WrittenValue& value : values) {
        names.insert(value.name);
        for (std::string& other : tiedNames(opened, value.name)) names.insert(std::move(other));
    }
    return names;
}

Tensor valueOf(const WrittenValue& value, const Execution& execution) {
    if (value.result) return value.position < execution.outputs.size() ? execution.outputs[value.position] : Tensor();
    const auto found = std::find_if(execution.written.begin(), execution.written.end(),
                                    [&](const auto& each) { return each.first == value.position; });
    return found != execution.written.end() ? found->second : Tensor();
}

}  // namespace cutaway
