#include "engine/host/make_program.h"

#include <algorithm>

#include "engine/host/make_host.h"
#include "engine/interpret/interpret.h"

namespace cutaway {
namespace {

HostKernel kernelOf(const Kernel& kernel, const std::string& name, const LoweredKernel& lowered) {
    HostKernel hostKernel{name, {}, kernel.sizes, lowered.workspace, {}, lowered.checks};
    for (size_t i = 0; i < lowered.nests.size(); ++i) {
        const LoopNest& nest = lowered.nests[i];
        hostKernel.launches.push_back({lowered.functionOf(i), nest.range, nest.unit, nest.threads});
    }
    for (const KernelBuffer& buffer : kernel.buffers) hostKernel.written.push_back(buffer.written);
    return hostKernel;
}

/// The function of a graph, before those of the graphs that its calls run.
Result<void> addFunction(const ScheduledProgram& scheduled, const std::string& name,
                         const std::vector<LoweredKernel>& kernels, size_t& next, HostProgram& program,
                         std::vector<std::pair<int64_t, int64_t>> savedInputs = {}) {
    HostSource source{name, &scheduled, {}, {}, std::move(savedInputs)};
    for (const PlannedKernel& planned : scheduled.kernels) {
        const std::string own = name == kRunFunction ? planned.kernel.name : name + "/" + planned.kernel.name;
        source.kernels.push_back(program.kernels.size());
        program.kernels.push_back(kernelOf(planned.kernel, own, kernels.at(next++)));
    }
    for (const auto& body : scheduled.bodies) source.functions[body.first] = name + "/" + body.first;
    CT_TRY(HostFunction function, makeHostFunction(source, program));
    program.functions.push_back(std::move(function));
    for (const auto& body : scheduled.bodies)
        CT_TRY_VOID(addFunction(*body.second, source.functions[body.first], kernels, next, program));
    return {};
}

}  // namespace

std::vector<LoweredKernel> lowerKernels(const ScheduledProgram& scheduled) {
    std::vector<LoweredKernel> lowered;
    for (const PlannedKernel& planned : scheduled.kernels)
        lowered.push_back(lowerLoops(planned.kernel, planned.plan, *scheduled.target));
    for (const auto& body : scheduled.bodies)
        for (LoweredKernel& kernel : lowerKernels(*body.second)) lowered.push_back(std::move(kernel));
    return lowered;
}

Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<LoweredKernel>& kernels) {
    HostProgram program;
    program.device = scheduled.target->device;
    size_t next = 0;
    CT_TRY_VOID(addFunction(scheduled, kRunFunction, kernels, next, program));
    return program;
}

Result<HostProgram> hostProgramOf(const TrainingHalves& halves, const std::vector<LoweredKernel>& kernels) {
    HostProgram program;
    program.device = halves.forward->target->device;
    size_t next = 0;
    CT_TRY_VOID(addFunction(*halves.forward, kForwardFunction, kernels, next, program));
    // A saved input of the forward stays where it is.
    const Graph& forward = halves.forward->module->graph();
    const std::vector<Node*> placeholders = forward.placeholders();
    const std::vector<Argument> results = forward.outputs();
    std::vector<std::pair<int64_t, int64_t>> savedInputs;
    for (const int64_t saved : halves.saved) {
        const Node* value = saved < 0 ? nullptr : results.at(static_cast<size_t>(saved)).node();
        const auto input = std::find(placeholders.begin(), placeholders.end(), value);
        const bool shared = value != nullptr && input != placeholders.end() &&
                            program.functions[0].parameters[static_cast<size_t>(input - placeholders.begin())].constant;
        savedInputs.emplace_back(saved, shared ? input - placeholders.begin() : -1);
    }
    CT_TRY_VOID(addFunction(*halves.backward, kBackwardFunction, kernels, next, program, std::move(savedInputs)));
    return program;
}

bool isSaved(const HostProgram& program, size_t function, int64_t result) {
    const auto takes = [&](const HostParameter& parameter) { return parameter.saved == result; };
    return function == 0 && std::any_of(program.functions.begin(), program.functions.end(), [&](const HostFunction& f) {
               return std::any_of(f.parameters.begin(), f.parameters.end(), takes);
           });
}

Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled) {
    return hostProgramOf(scheduled, lowerKernels(scheduled));
}

std::optional<size_t> functionNamed(const HostProgram& program, std::string_view name) {
    for (size_t i = 0; i < program.functions.size(); ++i)
        if (program.functions[i].name == name) return i;
    return std::nullopt;
}

Result<void> addHeldConstants(const HostProgram& program, const ScheduledProgram& scheduled, const Module& module,
                              const std::string& function, std::vector<Tensor>& constants) {
    for (const ScheduledValue& value : scheduled.values) {
        if (value.kind != ScheduledValue::Kind::Constant) continue;
        const Node& node = *value.key.node;
        CT_TRY(const Tensor held, attributeOf(module, node));
        const std::string name = hostConstant(function, node.target());
        const auto at = std::find(program.constants.begin(), program.constants.end(), name);
        constants[static_cast<size_t>(std::distance(program.constants.begin(), at))] = held;
    }
    for (const auto& body : scheduled.bodies)
        CT_TRY_VOID(
            addHeldConstants(program, *body.second, *body.second->module, function + "/" + body.first, constants));
    return {};
}

Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled) {
    std::vector<Tensor> constants(program.constants.size());
    CT_TRY_VOID(addHeldConstants(program, scheduled, *scheduled.module, kRunFunction, constants));
    return constants;
}

}  // namespace cutaway
