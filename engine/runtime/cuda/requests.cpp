#include "engine/runtime/cuda/requests.h"

#include <mutex>
#include <optional>

#include "engine/runtime/wire.h"
#include "engine/runtime/worker_pool.h"

namespace cutaway {

Result<CudaFound> findCuda(const Progress& progress) {
    static std::mutex mutex;
    static std::optional<CudaFound> cudaFound;
    const std::lock_guard lock(mutex);
    if (cudaFound) return *cudaFound;
    WorkerOptions options;
    options.timeoutSeconds = 60;
    // It opens the GPU, which whoever asks next need not wait for.
    CT_TRY(PooledWorker taken, takeWorker(WorkerKind::Device));
    CT_TRY(const Message reply,
           taken.worker.ask(WorkerTask::FindCuda, "the search for a GPU", {}, {}, options, progress));
    giveWorker(std::move(taken.worker), WorkerKind::Device);
    CudaFound found;
    ByteReader in(reply.text);
    for (std::string* text : {&found.device, &found.whyNoDevice, &found.compiler, &found.whyNoCompiler})
        *text = in.text();
    found.capability = in.pod<int>();
    in.each([&] {
        DevicesFound::Gpu& gpu = found.all.gpus.emplace_back();
        gpu.name = in.text();
        gpu.capability = in.pod<int>();
        gpu.memoryBytes = in.pod<int64_t>();
        gpu.freeBytes = in.pod<int64_t>();
    });
    in.each([&] {
        DevicesFound::Part& part = found.all.parts.emplace_back();
        for (std::string* text : {&part.name, &part.version, &part.missing}) *text = in.text();
    });
    in.each([&] {
        const std::string name(in.text());
        found.figures[name] = in.pod<double>();
    });
    if (in.failed()) return Error{ErrorCode::ToolFailed, "the worker's reply about the GPU is damaged", {}, {}};
    return *(cudaFound = std::move(found));
}

int capabilityOf(const CudaFound& found) {
    constexpr int kOfTarget = 90;
    return found.capability > 0 ? found.capability : kOfTarget;
}

Result<std::string> compileCuda(const std::string& source, const std::vector<std::string>& options,
                                const Progress& progress) {
    ByteWriter out;
    out.text(source);
    out.count(options.size());
    for (const std::string& option : options) out.text(option);
    constexpr double kSeconds = 300;
    CT_TRY(const Message reply, askWorker(WorkerTask::CompileCuda, "NVRTC", out.bytes, {}, {0, kSeconds}, progress));
    return reply.text;
}

}  // namespace cutaway
