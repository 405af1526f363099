#include "engine/runtime/cpu/host_package.h"

#include <map>
#include <tuple>

#include "engine/host/bind_host.h"

namespace cutaway {

std::vector<size_t> returnedBytes(const HostProgram& program, size_t function, const BoundFunction& bound,
                                  bool leaveSaved) {
    const std::vector<int64_t>& results = program.functions[function].results;
    std::vector<size_t> bytes(results.size());
    for (size_t r = 0; r < results.size(); ++r)
        if (results[r] >= 0 && !(leaveSaved && isSaved(program, function, static_cast<int64_t>(r))))
            bytes[r] = static_cast<size_t>(bound.values[static_cast<size_t>(results[r])].bytes);
    return bytes;
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
    for (const HostFunction& function : program.functions)
        for (const HostValue& value : function.values)
            if (value.kind == HostValue::Kind::Constant) one(constants[static_cast<size_t>(value.index)], value.type);
    for (size_t f = 0; f < weights.size() && f < program.functions.size(); ++f) {
        const HostFunction& hostFunction = program.functions[f];
        for (size_t i = 0; i < weights[f].size() && i < hostFunction.parameters.size(); ++i)
            if (const TensorType* type = hostFunction.parameters[i].type.tensor();
                type && hostFunction.parameters[i].constant)
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
