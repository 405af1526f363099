#include "engine/runtime/exported/interface.h"

#include <stdexcept>

#include "engine/runtime/exported/guarded.h"
#include "engine/runtime/exported/host_support.h"

namespace ct {

std::string& lastFailure() {
    thread_local std::string failure;
    return failure;
}
const char* lastError() { return lastFailure().c_str(); }

namespace {

/// Weight `number` from now on, in the port's layout; `memory`: that it lies in, if it is to be kept. A copy where it
/// lies in another way, or where `copied`.
void place(Weights& weights, const CtPort& port, size_t number, const CtTensor& given, bool copied,
           std::shared_ptr<const void> memory) {
    CtTensor tensor = given;
    tensor.sizes = port.sizes;
    tensor.strides = port.strides;
    if (copied || !liesAs(given, port.strides)) {
        auto own = std::make_shared<Memory>();
        tensor.data = own->grow(extentOf(port.dtype, port.rank, port.sizes, port.strides));
        layOut(given, port.strides, static_cast<char*>(tensor.data));
        memory = std::move(own);
    }
    weights.constants[number] = tensor;
    weights.memory[number] = std::move(memory);
}
bool fits(const CtPort& port, const CtTensor& given) {
    bool same = given.dtype == port.dtype && given.rank == port.rank;
    for (int32_t d = 0; same && d < port.rank; ++d) same = given.sizes[d] == port.sizes[d];
    return same;
}
std::string describe(const CtTensor& tensor) {
    return tensor.rank < 0 ? "none" : std::string(nameOfType(tensor.dtype)) + "[" + shapeOf(tensor) + "]";
}
int32_t numberOf(const CtProgramInfo& info, const char* name) {
    for (int32_t i = 0; i < info.constantCount; ++i)
        if (std::strcmp(info.constants[i].name, name) == 0) return i;
    for (int32_t i = 0; i < info.constantCount; ++i)
        if (info.constants[i].original != nullptr && std::strcmp(info.constants[i].original, name) == 0) return i;
    return -1;
}
/// The same tensors in the same memory; nothing is planned for them yet.
std::shared_ptr<Weights> copyOf(const Weights& weights) {
    auto made = std::make_shared<Weights>();
    made->constants = weights.constants;
    made->memory = weights.memory;
    return made;
}
std::shared_ptr<Weights> currentOf(CtProgram& program) {
    const std::lock_guard<std::mutex> lock(program.mutex);
    return program.current;
}

/// The context runs with the program's weights from now on.
void adopt(CtContext& context) {
    std::shared_ptr<Weights> now = currentOf(*context.program);
    if (context.weights == now) return;
    const CtProgramInfo& info = *context.program->code->info;
    for (int32_t i = 0; i < info.constantCount; ++i)
        if (now->constants[static_cast<size_t>(i)].rank < 0)
            throw std::runtime_error(std::string("weight '") + info.constants[i].name + "' has not been given");
    context.weights = std::move(now);
    for (const auto& frame : context.frames) frame->forgetPlans();
    if (!context.state.empty()) return;
    for (int32_t i = 0; i < info.constantCount; ++i) {
        const CtPort& port = info.constants[i];
        if (port.state == 0) continue;
        const int64_t bytes = extentOf(port.dtype, port.rank, port.sizes, port.strides);
        context.state.push_back(std::make_unique<Memory>());
        std::memcpy(context.state.back()->grow(bytes), context.weights->constants[static_cast<size_t>(i)].data,
                    static_cast<size_t>(bytes));
    }
}

}  // namespace

CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants, std::shared_ptr<const void> memory) {
    std::string& failure = lastFailure();
    failure.clear();
    return guarded<CtProgram*>(nullptr, failure, [&]() -> CtProgram* {
        if (host == nullptr || host->version != CT_PROGRAM_VERSION || host->bytes != sizeof(CtHost))
            throw std::runtime_error("the host is of another version");
        auto program = std::make_unique<CtProgram>();
        program->code = &code;
        program->host = host;
        const auto count = static_cast<size_t>(code.info->constantCount);
        program->current->constants.assign(count, {nullptr, 0, -1, nullptr, nullptr});
        program->current->memory.resize(count);
        for (size_t i = 0; constants != nullptr && i < count; ++i) {
            const CtPort& port = code.info->constants[i];
            if (!fits(port, constants[i]))
                throw std::runtime_error(std::string("constant '") + port.name +
                                         "' has another dtype or other sizes than the graph's");
            place(*program->current, port, i, constants[i], false, memory);
        }
        return program.release();
    });
}
CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants) {
    return create(code, host, constants, nullptr);
}

int32_t update(CtProgram* program, const char* const* names, const CtTensor* tensors, int32_t count, int32_t how) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        const std::lock_guard<std::mutex> turn(program->updating);
        const CtProgramInfo& info = *program->code->info;
        const bool later = (how & CT_NEXT) != 0;
        std::vector<bool> given(static_cast<size_t>(info.constantCount));
        const std::shared_ptr<Weights> base = later && program->next ? program->next : currentOf(*program);
        const std::shared_ptr<Weights> made = copyOf(*base);
        for (int32_t i = 0; i < count; ++i) {
            const int32_t number = numberOf(info, names[i]);
            if (number < 0) throw std::runtime_error(std::string("the program has no weight '") + names[i] + "'");
            const CtPort& port = info.constants[number];
            if (!fits(port, tensors[i]))
                throw std::runtime_error(std::string("weight '") + names[i] + "' must be " +
                                         describe({nullptr, port.dtype, port.rank, port.sizes, port.strides}) +
                                         ", not " + describe(tensors[i]));
            place(*made, port, static_cast<size_t>(number), tensors[i], (how & CT_LENT) == 0, nullptr);
            given[static_cast<size_t>(number)] = true;
        }
        for (size_t i = 0; (how & CT_ALL) != 0 && i < given.size(); ++i)
            if (!given[i])
                throw std::runtime_error(std::string("all weights are to be given, and '") + info.constants[i].name +
                                         "' is not");
        const std::lock_guard<std::mutex> lock(program->mutex);
        (later ? program->next : program->current) = made;
        return 0;
    });
}
int32_t swap(CtProgram* program) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        const std::lock_guard<std::mutex> turn(program->updating);
        const std::lock_guard<std::mutex> lock(program->mutex);
        if (!program->next) throw std::runtime_error("there are no other weights: give them with CT_NEXT first");
        program->current.swap(program->next);
        return 0;
    });
}
void forgetNext(CtProgram* program) {
    const std::lock_guard<std::mutex> turn(program->updating);
    const std::lock_guard<std::mutex> lock(program->mutex);
    program->next.reset();
}
int32_t weight(CtProgram* program, const char* name, int32_t later, CtTensor* out) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        const int32_t number = numberOf(*program->code->info, name);
        if (number < 0) throw std::runtime_error(std::string("the program has no weight '") + name + "'");
        const std::lock_guard<std::mutex> turn(program->updating);
        const std::shared_ptr<Weights> from = later != 0 ? program->next : currentOf(*program);
        if (!from) throw std::runtime_error("there are no other weights: give them with CT_NEXT first");
        *out = from->constants[static_cast<size_t>(number)];
        if (out->rank < 0) throw std::runtime_error(std::string("weight '") + name + "' has not been given");
        return 0;
    });
}

CtContext* contextOf(CtProgram* program, const CtParallel* parallel) {
    return guarded<CtContext*>(nullptr, lastFailure(), [&] {
        auto context = std::make_unique<CtContext>();
        context->program = program;
        context->parallel = {
            nullptr,
            1,
            [](const CtParallel*, int64_t range, int64_t, void (*body)(void*, int64_t, int64_t), void* state) {
                if (range > 0) body(state, 0, range);
            },
            nullptr,
            nullptr,
            nullptr,
            nullptr};
        if (parallel != nullptr) context->parallel = *parallel;
        const Code& code = *program->code;
        for (size_t f = 0; f < code.functionCount; ++f)
            context->frames.push_back(std::make_unique<Frame>(*context, f, code.functions[f].steps));
        return context.release();
    });
}

int32_t run(CtContext* context, const CtTensor* inputs, CtTensor* outputs) {
    context->error.clear();
    context->random = {};  // each run draws the same numbers
    return guarded<int32_t>(1, context->error, [&] {
        adopt(*context);
        return context->program->code->functions[0].run(*context->frames[0], inputs, outputs);
    });
}
const char* contextError(const CtContext* context) { return context->error.c_str(); }

void close(CtProgram* program) { delete program; }
void release(CtContext* context) { delete context; }

}  // namespace ct
