#include "engine/session/differentiated_graph.h"

#include <algorithm>

#include "engine/autograd/gradient_flow.h"
#include "engine/passes/whole_program.h"

namespace cutaway {
namespace {

bool hasTangents(const Module& module) {
    return std::any_of(module.inputs.begin(), module.inputs.end(),
                       [](const InputSpec& input) { return input.kind == InputSpec::Kind::Tangent; });
}

/// The graph that a step made the joint graph of; null if the file held that.
Snapshot graphBefore(const CompileTrace& trace) {
    for (const Step& step : trace.steps)
        if (!hasTangents(*step.before) && hasTangents(*step.after)) return step.before;
    return nullptr;
}

}  // namespace

DifferentiatedGraph differentiatedGraph(const CompileTrace& trace) {
    const Module& joint = *splitStepOf(trace)->before;
    const Snapshot before = hasTangents(joint) ? graphBefore(trace) : nullptr;
    DifferentiatedGraph out;
    const auto copy = std::make_shared<Module>(before ? *before : joint);
    if (before) {
        for (const Node* input : joint.graph().placeholders())
            if (Node* node = copy->graph().find(input->id())) copy->graph().setType(*node, input->type());
        while (out.leading < joint.outputs.size() && isNewValueOfInput(joint.outputs[out.leading])) ++out.leading;
    }
    out.flow = gradientFlow(*copy);
    out.memory = outputMemory(*copy, out.flow);
    out.graph = copy;
    return out;
}

}  // namespace cutaway
