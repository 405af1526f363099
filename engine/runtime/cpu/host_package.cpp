#include "engine/runtime/cpu/host_package.h"

#include "engine/host/make_host.h"
#include "engine/interpret/interpret.h"

namespace cutaway {

Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<PrintedKernel>& printed) {
    HostProgram program;
    for (size_t i = 0; i < printed.size(); ++i) {
        const Kernel& kernel = scheduled.kernels[i].kernel;
        HostKernel own{kernel.name, {}, kernel.sizes, printed[i].workspace, {}, false};
        for (const PrintedKernel::Launch& launch : printed[i].launches)
            own.launches.push_back({launch.function, launch.range});
        for (const KernelBuffer& buffer : kernel.buffers) own.written.push_back(buffer.written);
        own.checks = printed[i].helpers.contains("checked_index") || printed[i].helpers.contains("intdiv");
        program.kernels.push_back(std::move(own));
    }
    CT_TRY(HostFunction function, makeHostFunction({"run", &scheduled, 0}, program));
    program.functions.push_back(std::move(function));
    return program;
}

Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled) {
    std::vector<Tensor> constants(program.constants.size());
    for (const ScheduledValue& value : scheduled.values) {
        if (value.kind != ScheduledValue::Kind::Constant) continue;
        const Node& node = *value.key.node;
        CT_TRY(Tensor held, attributeOf(*scheduled.module, node));
        const TensorType& type = *tensorOf(value.key);
        const Dims strides = toInts(type.strides);
        if (held.strides() != strides && held.numel() > 0) {
            const size_t bytes = checkedBytes(type.dtype, extent(held.sizes(), strides), held.sizes());
            Tensor laid(Storage::allocate(bytes), type.dtype, held.sizes(), strides);
            copyInto(laid, held);
            held = laid;
        }
        const auto at = std::find(program.constants.begin(), program.constants.end(), node.target());
        constants[static_cast<size_t>(std::distance(program.constants.begin(), at))] = std::move(held);
    }
    return constants;
}

}  // namespace cutaway
