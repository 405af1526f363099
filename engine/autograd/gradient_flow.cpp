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

bool isDifferentiable(const Node& placeholder) {
    const TensorType* type = placeholder.type().tensor();
    return type != nullptr && isContinuous(type->dtype) && type->requiresGrad;
}

std::vector<bool> gradientFlow(const Module& module) {
    const Graph& graph = module.graph();
    std::vector<bool> flows(graph.idLimit(), false);
    for (const Node& node : graph.nodes()) {
        bool here = false;
        if (node.isPlaceholder()) {
            here = isDifferentiable(node);
        } else if (node.isCall() && !node.is(Tag::NoGradient) && !node.is(Tag::Factory) &&
                   holdsContinuous(node.type())) {
            for (const Node* operand : node.inputs()) here |= flows[index(operand->id())];
        }
        flows[index(node.id())] = here;
    }
    return flows;
}

}  // namespace cutaway
