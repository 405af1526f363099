#include "engine/runtime/exported/interface.h"

#include "engine/runtime/exported/guarded.h"
#include "engine/runtime/exported/host_support.h"

namespace ct {

std::string& lastFailure() {
    thread_local std::string failure;
    return failure;
}
const char* lastError() { return lastFailure().c_str(); }

CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants) {
    std::string& failure = lastFailure();
    failure.clear();
    return guarded<CtProgram*>(nullptr, failure, [&]() -> CtProgram* {
        if (host == nullptr || host->version != CT_PROGRAM_VERSION || host->bytes != sizeof(CtHost)) {
            failure = "the host is of another version";
            return nullptr;
        }
        auto program = std::make_unique<CtProgram>();
        program->code = &code;
        program->host = host;
        for (int32_t i = 0; i < code.info->constantCount; ++i) {
            const CtPort& port = code.info->constants[i];
            CtTensor tensor = constants[i];
            bool fits = tensor.dtype == port.dtype && tensor.rank == port.rank;
            for (int32_t d = 0; fits && d < port.rank; ++d) fits = tensor.sizes[d] == port.sizes[d];
            if (!fits) {
                failure = std::string("constant '") + port.name + "' has another dtype or other sizes than the graph's";
                return nullptr;
            }
            tensor.sizes = port.sizes;
            tensor.strides = port.strides;
            if (!liesAs(constants[i], port.strides)) {
                program->owned.push_back(std::make_unique<Memory>());
                tensor.data = program->owned.back()->grow(extentOf(port.dtype, port.rank, port.sizes, port.strides));
                layOut(constants[i], port.strides, static_cast<char*>(tensor.data));
            }
            program->constants.push_back(tensor);
        }
        return program.release();
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
        for (int32_t i = 0; i < code.info->constantCount; ++i) {
            const CtPort& port = code.info->constants[i];
            if (port.state == 0) continue;
            const int64_t bytes = extentOf(port.dtype, port.rank, port.sizes, port.strides);
            context->state.push_back(std::make_unique<Memory>());
            std::memcpy(context->state.back()->grow(bytes), program->constants[static_cast<size_t>(i)].data,
                        static_cast<size_t>(bytes));
        }
        return context.release();
    });
}

int32_t run(CtContext* context, const CtTensor* inputs, CtTensor* outputs) {
    context->error.clear();
    context->random = {};  // each run draws the same numbers
    return guarded<int32_t>(1, context->error, [&] {
        return context->program->code->functions[0].run(*context->frames[0], inputs, outputs);
    });
}
const char* contextError(const CtContext* context) { return context->error.c_str(); }

void close(CtProgram* program) { delete program; }
void release(CtContext* context) { delete context; }

}  // namespace ct
