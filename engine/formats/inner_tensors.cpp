#include "engine/formats/inner_tensors.h"

#include <map>

namespace cutaway {
namespace {

/// The name of the inner tensor that a call reads of `wrapper`; null if it does something else.
const std::string* innerName(const Node& call, const Node& wrapper) {
    if (!call.isCall("export.access_subclass_inner_tensor.default") || call.args().size() != 2) return nullptr;
    return call.arg(0).node() == &wrapper ? call.arg(1).get<std::string>() : nullptr;
}

}  // namespace

void takeInnerTensors(Module& module) {
    Graph& graph = module.graph();
    std::vector<Node*> inputs = graph.placeholders();
    if (inputs.size() != module.inputs.size()) return;
    for (size_t i = 0; i < inputs.size(); ++i) {  // what is put behind an input may be a wrapper itself
        Node& wrapper = *inputs[i];
        std::map<std::string, Node*> inner;
        size_t added = 0;
        for (Node* user : std::vector<Node*>(wrapper.users())) {
            const std::string* name = innerName(*user, wrapper);
            if (name == nullptr) continue;
            Node*& input = inner[*name];
            if (input == nullptr) {
                Node* const next = inputs[i + added]->next();
                input = &graph.placeholder(wrapper.name() + "_" + *name, user->type(), next);
                graph.setProvenance(*input, user->provenance());
                InputSpec spec = module.inputs[i];
                if (!spec.target.empty()) spec.target += "." + *name;
                ++added;
                inputs.insert(inputs.begin() + static_cast<int64_t>(i + added), input);
                module.inputs.insert(module.inputs.begin() + static_cast<int64_t>(i + added), std::move(spec));
            }
            graph.replaceUses(*user, *input);
            graph.erase(*user);
        }
        if (added == 0 || !wrapper.users().empty()) continue;
        graph.erase(wrapper);
        inputs.erase(inputs.begin() + static_cast<int64_t>(i));
        module.inputs.erase(module.inputs.begin() + static_cast<int64_t>(i));
        --i;
    }
}

}  // namespace cutaway
