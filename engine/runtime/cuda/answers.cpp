// The worker's end of requests.h.
#include "engine/runtime/cuda/kernels.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/wire.h"

namespace cutaway {

Result<Message> answerFindCuda() {
    CudaFound found;
    if (const auto device = cuda::Device::open()) {
        found.device = device->name();
        found.capability = device->capability();
    } else {
        found.whyNoDevice = device.error().text();
    }
    if (const auto nvrtc = cuda::Nvrtc::load()) found.compiler = nvrtc->version();
    else found.whyNoCompiler = nvrtc.error().text();
    ByteWriter out;
    for (const std::string* text : {&found.device, &found.whyNoDevice, &found.compiler, &found.whyNoCompiler})
        out.text(*text);
    out.pod(found.capability);
    Message reply;
    reply.text = std::move(out.bytes);
    return reply;
}

Result<Message> answerCompileCuda(const Message& request) {
    ByteReader in(request.text);
    const std::string source(in.text());
    std::vector<std::string> options;
    in.each([&] { options.emplace_back(in.text()); });
    if (in.failed()) return invalidInput("the request is damaged");
    CT_TRY(const cuda::Nvrtc nvrtc, cuda::Nvrtc::load());
    Message reply;
    CT_TRY(reply.text, nvrtc.cubin(source, options));
    return reply;
}

Result<std::shared_ptr<DeviceMemory>> cudaMemory() {
    CT_TRY(std::shared_ptr<cuda::Memory> memory, cuda::Memory::ofProcess());
    return std::shared_ptr<DeviceMemory>(std::move(memory));
}

Result<std::unique_ptr<KernelCode>> cudaKernels(const HostProgram& program, const std::vector<std::string>& cubins) {
    CT_TRY(const std::shared_ptr<cuda::Memory> memory, cuda::Memory::ofProcess());
    return cuda::Kernels::load(program, cubins, memory);
}

}  // namespace cutaway
