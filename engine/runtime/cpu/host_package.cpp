#include "engine/runtime/cpu/host_package.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/host/bind_host.h"
#include "engine/host/make_host.h"
#include "engine/interpret/interpret.h"

namespace cutaway {
namespace {

HostKernel kernelOf(const Kernel& kernel, const std::string& name, const PrintedKernel& printed) {
    HostKernel own{name, {}, kernel.sizes, printed.workspace, {}, false};
    for (const PrintedKernel::Launch& launch : printed.launches)
        own.launches.push_back({launch.function, launch.range});
    for (const KernelBuffer& buffer : kernel.buffers) own.written.push_back(buffer.written);
    own.checks = printed.helpers.contains("checked_index") || printed.helpers.contains("intdiv");
    return own;
}

/// The function of a graph, before those of the graphs that its calls run.
Result<void> addFunction(const ScheduledProgram& scheduled, const std::string& name,
                         const std::vector<PrintedKernel>& printed, size_t& next, HostProgram& program,
                         std::vector<std::pair<int64_t, int64_t>> border = {}) {
    HostSource source{name, &scheduled, {}, {}, std::move(border)};
    for (const PlannedKernel& planned : scheduled.kernels) {
        const std::string own = name == kRunFunction ? planned.kernel.name : name + "/" + planned.kernel.name;
        source.kernels.push_back(program.kernels.size());
        program.kernels.push_back(kernelOf(planned.kernel, own, printed.at(next++)));
    }
    for (const auto& body : scheduled.bodies) source.functions[body.first] = name + "/" + body.first;
    CT_TRY(HostFunction function, makeHostFunction(source, program));
    program.functions.push_back(std::move(function));
    for (const auto& body : scheduled.bodies)
        CT_TRY_VOID(addFunction(*body.second, source.functions[body.first], printed, next, program));
    return {};
}

}  // namespace

std::vector<PrintedKernel> printKernels(const ScheduledProgram& scheduled) {
    std::vector<PrintedKernel> printed;
    for (const PlannedKernel& planned : scheduled.kernels)
        printed.push_back(printCpp(lowerLoops(planned.kernel, planned.plan, *scheduled.target)));
    for (const auto& body : scheduled.bodies)
        for (PrintedKernel& kernel : printKernels(*body.second)) printed.push_back(std::move(kernel));
    return printed;
}

Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<PrintedKernel>& printed) {
    HostProgram program;
    size_t next = 0;
    CT_TRY_VOID(addFunction(scheduled, kRunFunction, printed, next, program));
    return program;
}

Result<HostProgram> hostProgramOf(const TrainingHalves& halves, const std::vector<PrintedKernel>& printed) {
    HostProgram program;
    size_t next = 0;
    CT_TRY_VOID(addFunction(*halves.forward, kForwardFunction, printed, next, program));
    // A saved input of the forward stays where it is.
    const Graph& forward = halves.forward->module->graph();
    const std::vector<Node*> placeholders = forward.placeholders();
    const std::vector<Argument> results = forward.outputs();
    std::vector<std::pair<int64_t, int64_t>> border;
    for (const int64_t saved : halves.saved) {
        const Node* value = saved < 0 ? nullptr : results.at(static_cast<size_t>(saved)).node();
        const auto input = std::find(placeholders.begin(), placeholders.end(), value);
        const bool shared = value != nullptr && input != placeholders.end() &&
                            program.functions[0].parameters[static_cast<size_t>(input - placeholders.begin())].constant;
        border.emplace_back(saved, shared ? input - placeholders.begin() : -1);
    }
    CT_TRY_VOID(addFunction(*halves.backward, kBackwardFunction, printed, next, program, std::move(border)));
    return program;
}

bool isSaved(const HostProgram& program, size_t function, int64_t result) {
    const auto takes = [&](const HostParameter& parameter) { return parameter.saved == result; };
    return function == 0 && std::any_of(program.functions.begin(), program.functions.end(), [&](const HostFunction& f) {
               return std::any_of(f.parameters.begin(), f.parameters.end(), takes);
           });
}

std::vector<size_t> returnedBytes(const HostProgram& program, size_t function, const BoundFunction& bound,
                                  bool leaveSaved) {
    const std::vector<int64_t>& results = program.functions[function].results;
    std::vector<size_t> bytes(results.size());
    for (size_t r = 0; r < results.size(); ++r)
        if (results[r] >= 0 && !(leaveSaved && isSaved(program, function, static_cast<int64_t>(r))))
            bytes[r] = static_cast<size_t>(bound.values[static_cast<size_t>(results[r])].bytes);
    return bytes;
}

std::optional<size_t> functionNamed(const HostProgram& program, std::string_view name) {
    for (size_t i = 0; i < program.functions.size(); ++i)
        if (program.functions[i].name == name) return i;
    return std::nullopt;
}

Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled) {
    return hostProgramOf(scheduled, printKernels(scheduled));
}

namespace {

Result<void> addConstants(const HostProgram& program, const ScheduledProgram& scheduled, const std::string& function,
                          std::vector<Tensor>& constants) {
    for (const ScheduledValue& value : scheduled.values) {
        if (value.kind != ScheduledValue::Kind::Constant) continue;
        const Node& node = *value.key.node;
        CT_TRY(const Tensor held, attributeOf(*scheduled.module, node));
        const std::string name = hostConstant(function, node.target());
        const auto at = std::find(program.constants.begin(), program.constants.end(), name);
        constants[static_cast<size_t>(std::distance(program.constants.begin(), at))] = held;
    }
    for (const auto& body : scheduled.bodies)
        CT_TRY_VOID(addConstants(program, *body.second, function + "/" + body.first, constants));
    return {};
}

}  // namespace

Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled) {
    std::vector<Tensor> constants(program.constants.size());
    CT_TRY_VOID(addConstants(program, scheduled, kRunFunction, constants));
    return constants;
}

Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const TrainingHalves& halves) {
    std::vector<Tensor> constants(program.constants.size());
    CT_TRY_VOID(addConstants(program, *halves.forward, kForwardFunction, constants));
    CT_TRY_VOID(addConstants(program, *halves.backward, kBackwardFunction, constants));
    return constants;
}

void layOut(const HostProgram& program, std::vector<Tensor>& constants, std::vector<std::vector<Tensor>>& weights,
            const ForgetBytes& forget) {
    std::map<const Storage*, int> users;  // looked up, never iterated
    std::map<std::tuple<const void*, DType, Dims, Dims, Dims>, Tensor> copies;
    const auto count = [&](const std::vector<Tensor>& tensors) {
        for (const Tensor& tensor : tensors)
            if (tensor.defined()) ++users[tensor.storage().get()];
    };
    count(constants);
    for (const std::vector<Tensor>& own : weights) count(own);
    const auto one = [&](Tensor& tensor, const TensorType& type) {
        if (!tensor.defined() || !allInts(type.strides)) return;
        const Dims strides = toInts(type.strides);
        if (strides == tensor.strides() || tensor.numel() == 0) return;
        Tensor& laid = copies[{tensor.data(), tensor.dtype(), tensor.sizes(), tensor.strides(), strides}];
        if (!laid.defined()) laid = laidOut(tensor, strides);
        Storage& storage = *tensor.storage();
        if (forget && --users[&storage] == 0) forget({storage.data(), storage.size()});
        tensor = laid;
    };
    for (const HostFunction& own : program.functions)
        for (const HostValue& value : own.values)
            if (value.kind == HostValue::Kind::Constant) one(constants[static_cast<size_t>(value.index)], value.type);
    for (size_t f = 0; f < weights.size() && f < program.functions.size(); ++f) {
        const HostFunction& own = program.functions[f];
        for (size_t i = 0; i < weights[f].size() && i < own.parameters.size(); ++i)
            if (const TensorType* type = own.parameters[i].type.tensor(); type && own.parameters[i].constant)
                one(weights[f][i], *type);
    }
}

Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled) {
    CT_TRY(std::vector<Tensor> constants, heldConstantsOf(program, scheduled));
    std::vector<std::vector<Tensor>> none;
    layOut(program, constants, none, {});
    return constants;
}

}  // namespace cutaway
