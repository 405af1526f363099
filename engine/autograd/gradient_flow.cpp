#include "engine/autograd/gradient_flow.h"

#include <algorithm>

namespace cutaway {
namespace {

bool isContinuous(DType dtype) { return isFloating(dtype) || isComplex(dtype); }

bool holdsContinuous(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return isContinuous(tensor->dtype);
    if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), holdsContinuous);
    return false;
}

}  // namespace

bool isDifferentiable(const InputSpec& spec, const Node& placeholder) {
    const TensorType* type = placeholder.type().tensor();
    if (type == nullptr || !isContinuous(type->dtype)) return false;
    return type->requiresGrad || spec.kind == InputSpec::Kind::Parameter;
}

std::vector<bool> gradientFlow(const Module& module) {
    const Graph& graph = module.graph();
    std::vector<bool> flows(graph.idLimit(), false);
    size_t input = 0;
    for (const Node& node : graph.nodes()) {
        bool here = false;
        if (node.isPlaceholder()) {
            here = isDifferentiable(input < module.inputs.size() ? module.inputs[input] : InputSpec{}, node);
            ++input;
        } else if (node.isCall() && !node.is(Tag::NoGradient) && !node.is(Tag::Factory) &&
                   holdsContinuous(node.type())) {
            for (const Node* operand : node.inputs()) here |= flows[index(operand->id())];
        }
        flows[index(node.id())] = here;
    }
    return flows;
}

}  // namespace cutaway
