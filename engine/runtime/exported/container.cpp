#include "engine/runtime/exported/container.h"

#include <condition_variable>
#include <stdexcept>

#include "engine/runtime/exported/guarded.h"
#include "engine/runtime/exported/host_support.h"

struct CtContainer {
    CtProgram* program = nullptr;
    CtParallel parallel{};
    std::mutex mutex;
    std::condition_variable freed;
    std::vector<CtContext*> all, free;

    ~CtContainer() {
        for (CtContext* each : all) ct::release(each);
        if (program != nullptr) ct::close(program);
    }
};

namespace ct {
namespace {

/// A context of the container's, for as long as this lives.
class Taken {
  public:
    Taken(CtContainer& from, bool wait) : m_from(&from) {
        std::unique_lock<std::mutex> lock(from.mutex);
        if (wait) from.freed.wait(lock, [&] { return !from.free.empty(); });
        if (from.free.empty()) throw std::runtime_error("all of the container's contexts run");
        m_context = from.free.back();
        from.free.pop_back();
    }
    ~Taken() {
        const std::lock_guard<std::mutex> lock(m_from->mutex);
        m_from->free.push_back(m_context);
        m_from->freed.notify_one();
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    CtContext& context() const { return *m_context; }

  private:
    CtContainer* m_from;
    CtContext* m_context = nullptr;
};

/// Elements row by row, sizes and strides, all in memory of malloc.
CtTensor copyOf(const CtTensor& from) {
    if (from.rank < 0) return {nullptr, from.dtype, -1, nullptr, nullptr};
    const auto rank = static_cast<size_t>(from.rank);
    auto* const dims = static_cast<int64_t*>(std::malloc(2 * sizeof(int64_t) * (rank + 1)));
    if (dims == nullptr) throw std::bad_alloc();
    int64_t elements = 1;
    for (size_t d = rank; d-- > 0; elements *= from.sizes[d]) {
        dims[d] = from.sizes[d];
        dims[rank + d] = elements;
    }
    void* const data = std::malloc(static_cast<size_t>(std::max<int64_t>(elements * bytesOf(from.dtype), 1)));
    if (data == nullptr) {
        std::free(dims);
        throw std::bad_alloc();
    }
    layOut(from, dims + rank, static_cast<char*>(data));
    return {data, from.dtype, from.rank, dims, dims + rank};
}

}  // namespace

int32_t createContainer(const Library& library, CtContainer** out, size_t contexts, const char* device,
                        const char* weights) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        *out = nullptr;
        const std::string where = device != nullptr ? device : "cpu";
        if (where != "cpu" && where.rfind("cpu:", 0) != 0)
            throw std::runtime_error("the program runs on the CPU, not on " + where);
        if (contexts == 0) throw std::runtime_error("a container of no models cannot run");
        auto made = std::make_unique<CtContainer>();
        made->program = open(library, weights);
        if (made->program == nullptr) return 1;
        made->parallel = parallel(0);
        for (size_t i = 0; i < contexts; ++i) {
            CtContext* const context = contextOf(made->program, &made->parallel);
            if (context == nullptr) return 1;
            made->all.push_back(context);
            made->free.push_back(context);
        }
        *out = made.release();
        return 0;
    });
}
void deleteContainer(CtContainer* container) { delete container; }
CtProgram* programOf(CtContainer* container) { return container->program; }

int32_t runContainer(CtContainer* container, const CtTensor* inputs, size_t inputCount, CtTensor* outputs,
                     size_t outputCount, bool alone) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        const CtProgramInfo& info = *container->program->code->info;
        if (inputCount != static_cast<size_t>(info.inputCount) || outputCount != static_cast<size_t>(info.outputCount))
            throw std::runtime_error("the program takes " + std::to_string(info.inputCount) + " inputs and gives " +
                                     std::to_string(info.outputCount) + " outputs");
        const Taken taken(*container, !alone);
        CtContext& context = taken.context();
        context.parallel.threads = alone ? 1 : container->parallel.threads;
        std::vector<CtTensor> made(outputCount);
        if (run(&context, inputs, made.data()) != 0) throw std::runtime_error(context.error);
        for (size_t i = 0; i < outputCount; ++i) outputs[i] = {nullptr, 0, -1, nullptr, nullptr};
        try {
            for (size_t i = 0; i < outputCount; ++i) outputs[i] = copyOf(made[i]);
        } catch (...) {
            for (size_t i = 0; i < outputCount; ++i) dropTensor(&outputs[i]);
            throw;
        }
        return 0;
    });
}
void dropTensor(CtTensor* tensor) {
    std::free(tensor->data);
    std::free(const_cast<int64_t*>(tensor->sizes));
    *tensor = {nullptr, 0, -1, nullptr, nullptr};
}

const char* nameOf(const CtPort* ports, int32_t count, size_t index, bool original) {
    if (index < static_cast<size_t>(count)) {
        const char* const found = original ? ports[index].original : ports[index].name;
        return found != nullptr ? found : "";
    }
    lastFailure() = "there is no number " + std::to_string(index) + " of " + std::to_string(count);
    return nullptr;
}
int64_t bytesOfPort(const CtPort& port) {
    int64_t bytes = bytesOf(port.dtype);
    for (int32_t d = 0; d < port.rank; ++d) bytes *= port.sizes[d];
    return port.rank < 0 ? 0 : bytes;
}
int32_t extract(CtProgram* program, CtTensor* out, bool later) {
    const CtProgramInfo& info = *program->code->info;
    for (int32_t i = 0; i < info.constantCount; ++i)
        if (weight(program, info.constants[i].name, later ? 1 : 0, &out[i]) != 0) return 1;
    return 0;
}

}  // namespace ct
