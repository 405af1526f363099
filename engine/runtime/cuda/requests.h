#pragma once
// What a program asks of its worker about a GPU, and the worker's answers. The libraries are loaded there alone, when
// they are asked for: the driver (libcuda), NVRTC, cuBLASLt. Without them, or in a build without CUTAWAY_CUDA, answers
// say what is missing.
#include "cutaway/devices.h"
#include "engine/runtime/device_memory.h"
#include "engine/runtime/worker.h"

namespace cutaway {

class KernelCode;
struct HostProgram;

/// What this machine has; an empty name or version has its reason beside it.
struct CudaFound {
    std::string device, whyNoDevice;      // "NVIDIA H200"
    std::string compiler, whyNoCompiler;  // NVRTC's version: "13.0"
    int capability = 0;                   // 90
    DevicesFound all;
};
/// Asked once in a program's life. Errors: the worker's.
Result<CudaFound> findCuda(const Progress& progress = {});
/// Machine code of CUDA C++ by these options (cudaOptions). Errors: no NVRTC, with what to install; its own words.
Result<std::string> compileCuda(const std::string& source, const std::vector<std::string>& options,
                                const Progress& progress = {});

// In the worker.
Result<Message> answerFindCuda();
Result<Message> answerCompileCuda(const Message& request);
/// Memory of the first GPU, and the code of a program whose kernels lie in these files. Errors: no driver, no GPU; what
/// cannot be loaded.
Result<std::shared_ptr<DeviceMemory>> cudaMemory();
Result<std::unique_ptr<KernelCode>> cudaKernels(const HostProgram& program, const std::vector<std::string>& cubins);

}  // namespace cutaway
