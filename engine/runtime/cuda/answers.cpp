// The worker's end of requests.h.
#include "engine/runtime/cuda/kernels.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/wire.h"

namespace cutaway {

namespace {

/// As NVIDIA's libraries number themselves: 91002 is 9.10.2.
std::string versionOf(size_t number) {
    return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
           std::to_string(number % 100);
}

/// A library that is there or not: what it costs, and the packages that have it (PyPI's, NVIDIA's for Debian).
DevicesFound::Part part(const char* name, const Result<std::string>& version, const char* costs, const char* packages) {
    if (version) return {name, *version, {}};
    return {name, {}, version.error().message + "; " + costs + "; install " + packages};
}

Result<std::string> driverVersion() {
    CT_TRY(const cuda::Driver driver, cuda::Driver::load());
    int version = 0;
    CT_TRY_VOID(driver.check(driver.driverGetVersion(&version), "cuDriverGetVersion"));
    return "for CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}
Result<std::string> nvrtcVersion() {
    CT_TRY(const cuda::Nvrtc nvrtc, cuda::Nvrtc::load());
    return nvrtc.version();
}
Result<std::string> cublasLtVersion() {
    CT_TRY(const cuda::CublasLt lt, cuda::CublasLt::load());
    return versionOf(lt.getVersion());
}
Result<std::string> cudnnVersion() {
    CT_TRY(cuda::Library library, cuda::Library::open({"libcudnn.so.9", "libcudnn.so"}, "convolves on a GPU"));
    size_t (*version)() = nullptr;
    library.bind(version, "cudnnGetVersion");
    if (version == nullptr) return invalidInput(library.name() + " does not say its version");
    return versionOf(version());
}

std::vector<DevicesFound::Gpu> gpus() {
    std::vector<DevicesFound::Gpu> all;
    const auto driver = cuda::Driver::load();
    int count = 0;
    if (!driver || driver->init(0) != 0 || driver->deviceGetCount(&count) != 0) return all;
    for (int i = 0; i < count; ++i) {
        int device = 0, major = 0, minor = 0;
        char name[256] = {};
        size_t bytes = 0;
        if (driver->deviceGet(&device, i) != 0 || driver->deviceGetName(name, sizeof name, device) != 0) continue;
        driver->deviceGetAttribute(&major, cuda::kCapabilityMajor, device);
        driver->deviceGetAttribute(&minor, cuda::kCapabilityMinor, device);
        driver->deviceTotalMem(&bytes, device);
        all.push_back({name, major * 10 + minor, static_cast<int64_t>(bytes), -1});
    }
    return all;
}

DevicesFound allDevices() {
    DevicesFound found;
    found.gpus = gpus();
    size_t free = 0, total = 0;
    if (const auto device = cuda::Device::open();
        device && !found.gpus.empty() && device->driver().memGetInfo(&free, &total) == 0)
        found.gpus[0].freeBytes = static_cast<int64_t>(free);
    found.parts = {
        part("driver", driverVersion(), "nothing runs on a GPU", "NVIDIA's driver"),
        part("NVRTC", nvrtcVersion(), "kernels for GPUs are not compiled",
             "nvidia-cuda-nvrtc from PyPI or cuda-nvrtc-13-0 from NVIDIA"),
        part("cuBLASLt", cublasLtVersion(), "matrix products are computed on the host",
             "nvidia-cublas from PyPI or libcublas-13-0 from NVIDIA"),
        part("cuDNN", cudnnVersion(), "convolutions are computed on the host",
             "nvidia-cudnn-cu13 from PyPI or libcudnn9-cuda-13 from NVIDIA"),
    };
    return found;
}

}  // namespace

Result<Message> answerFindCuda() {
    CudaFound found;
    found.all = allDevices();
    if (const auto device = cuda::Device::open()) {
        found.device = device->name();
        found.capability = device->capability();
        found.figures = device->figures();
    } else {
        found.whyNoDevice = device.error().text();
    }
    if (const auto nvrtc = cuda::Nvrtc::load()) found.compiler = nvrtc->version();
    else found.whyNoCompiler = nvrtc.error().text();
    ByteWriter out;
    for (const std::string* text : {&found.device, &found.whyNoDevice, &found.compiler, &found.whyNoCompiler})
        out.text(*text);
    out.pod(found.capability);
    out.count(found.all.gpus.size());
    for (const DevicesFound::Gpu& gpu : found.all.gpus) {
        out.text(gpu.name);
        out.pod(gpu.capability);
        out.pod(gpu.memoryBytes);
        out.pod(gpu.freeBytes);
    }
    out.count(found.all.parts.size());
    for (const DevicesFound::Part& each : found.all.parts)
        for (const std::string* text : {&each.name, &each.version, &each.missing}) out.text(*text);
    out.count(found.figures.size());
    for (const auto& [name, value] : found.figures) {
        out.text(name);
        out.pod(value);
    }
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
    CT_TRY(reply.text, nvrtc.compile(source, options));
    return reply;
}

bool cudaIsOpen() { return cuda::Device::isOpen(); }

Result<std::shared_ptr<DeviceMemory>> cudaMemory() {
    CT_TRY(std::shared_ptr<cuda::Memory> memory, cuda::Memory::ofProcess());
    return std::shared_ptr<DeviceMemory>(std::move(memory));
}

Result<std::unique_ptr<KernelCode>> cudaKernels(const HostProgram& program, const std::vector<std::string>& cubins) {
    CT_TRY(const std::shared_ptr<cuda::Memory> memory, cuda::Memory::ofProcess());
    return cuda::Kernels::load(program, cubins, memory);
}

}  // namespace cutaway
