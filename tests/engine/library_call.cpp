#include "tests/engine/library_call.h"

#include <algorithm>

#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/thread_pool.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway::testing {

const Tensor& LibraryCallCase::valueOf(const Node& node) const {
    return std::find_if(operands.begin(), operands.end(), [&](const auto& each) { return each.first == &node; })
        ->second;
}
bool LibraryCallCase::isConstant(const Node& node) const {
    for (size_t i = 0; i < constant.size(); ++i)
        if (operands[i].first == &node) return constant[i];
    return false;
}

Result<std::unique_ptr<PlannedCall>> planByLibrary(const LibraryCallCase& one, const std::vector<Tensor>& results,
                                                   int threads) {
    const CtLibrary* library = libraryNamed(one.library);
    if (library == nullptr) return invalidInput("there is no library '" + one.library + "' for " + one.op);
    const auto describe = [&](const Tensor& tensor, bool constant) {
        if (!tensor.defined()) return CallTensor{.absent = true};
        return CallTensor{tensor.dtype(), tensor.sizes(), tensor.strides(), constant,
                          constant ? tensor.data() : nullptr};
    };
    std::vector<CallTensor> made;
    for (const Tensor& result : results) made.push_back(describe(result, false));
    std::vector<std::string> params;
    for (const Param& param : requireOp(one.op).schema()->params) params.push_back(param.name);
    auto call = std::make_unique<OwnedCall>(
        one.op, params, one.args, [&](const Node& node) { return describe(one.valueOf(node), one.isConstant(node)); },
        made);
    CT_TRY(std::unique_ptr<PlannedCall> planned, PlannedCall::plan(*library, std::move(call), threads));
    std::vector<const void*> operands;
    for (const Node* node : planned->call().operands()) operands.push_back(one.valueOf(*node).data());
    CT_TRY_VOID(planned->pack(operands, *hostMemory()));
    return planned;
}

Result<void> runByLibrary(const PlannedCall& planned, const LibraryCallCase& one, std::vector<Tensor>& results,
                          int threads) {
    std::vector<const void*> operands;
    std::vector<std::vector<std::byte>> gone;  // of constants that nobody keeps, since runs do not read them
    for (const Node* node : planned.call().operands()) {
        const Tensor& value = one.valueOf(*node);
        operands.push_back(value.data());
        if (!one.isConstant(*node) || planned.reads(operands.size() - 1)) continue;
        const int64_t elements = extent(value.sizes(), value.strides());
        gone.emplace_back(static_cast<size_t>(elements * byteSize(value.dtype())), std::byte{0xff});
        operands.back() = gone.back().data();
    }
    std::vector<void*> addresses;
    for (Tensor& result : results) addresses.push_back(result.defined() ? result.data() : nullptr);
    const auto scratch =
        Storage::allocateUninitialized(static_cast<size_t>(std::max<int64_t>(64, planned.scratchBytes())));
    std::memset(scratch->data(), 0xff, scratch->size());  // NaN: nothing may be read that this run has not written
    const ThreadPool pool(threads);
    CtParallel lent = lentThreads(pool, threads);
    CtRandom random{};
    lent.random = &random;
    return planned.run(operands, addresses, scratch->data(), lent);
}

}  // namespace cutaway::testing
