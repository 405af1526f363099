#ifndef CUTAWAY_INTERFACE_H
#define CUTAWAY_INTERFACE_H
// What the functions of an exported program's C interface do. Nothing is thrown through them.
#include <exception>

#include "engine/runtime/exported/graphs.h"

/// What the library shows; all else is its own.
#define CT_EXPORTED __attribute__((visibility("default")))

namespace ct {

/// This thread's last failure. In a struct: within functions that give a std::string GCC and clang mangle the name of a
/// local differently (ABI tags), and a library may hold code of both.
struct Failure {
    std::string text;
};
inline Failure& lastFailure() {
    thread_local Failure failure;
    return failure;
}
/// What `body` returns; `otherwise` where it throws, and `told` gets the reason.
template <class Result, class Body>
Result guarded(Result otherwise, std::string& told, Body&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        told = "there is not enough memory";
    } catch (const std::exception& error) {
        told = error.what();
    }
    return otherwise;
}

inline CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants) {
    std::string& failure = lastFailure().text;
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

inline CtContext* contextOf(CtProgram* program, const CtParallel* parallel) {
    return guarded<CtContext*>(nullptr, lastFailure().text, [&] {
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
        for (size_t f = 0; f < code.functions.size(); ++f)
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

inline int32_t run(CtContext* context, const CtTensor* inputs, CtTensor* outputs) {
    context->error.clear();
    context->random = {};  // each run draws the same numbers
    return guarded<int32_t>(1, context->error, [&] {
        return context->program->code->functions[0].run(*context->frames[0], inputs, outputs);
    });
}

}  // namespace ct
#endif
