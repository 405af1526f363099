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
    /// "capability" 9.0, "dram_gbps", "tflops_f16", "tflops_bf16", "tflops_f32", "tflops_tf32"; the last four with
    /// "_parity" as PyTorch 2.11 computes them: a thousandth of it for most devices, so that every product counts as
    /// bound by computing. Empty without a GPU.
    std::map<std::string, double> figures;
    DevicesFound all;
};
/// Asked once in a program's life. Errors: the worker's.
Result<CudaFound> findCuda(const Progress& progress = {});
/// What is compiled for: the GPU that was found, without one that of the target (90).
int capabilityOf(const CudaFound& found);
/// Machine code of CUDA C++ by these options (cudaOptions), or PTX where they ask for that. Errors: no NVRTC, with what
/// to install; its own words.
Result<std::string> compileCuda(const std::string& source, const std::vector<std::string>& options,
                                const Progress& progress = {});

// In the worker.
Result<Message> answerFindCuda();
Result<Message> answerCompileCuda(const Message& request);
/// The file where cuBLASLt's measured choices are kept; empty: none.
void keepCandidates(std::string file);
/// Whether this process has a GPU open, and some of its memory with that.
bool cudaIsOpen();
/// Memory of the first GPU, and the code of a program whose kernels lie in these files. Errors: no driver, no GPU; what
/// cannot be loaded.
Result<std::shared_ptr<DeviceMemory>> cudaMemory();
Result<std::unique_ptr<KernelCode>> cudaKernels(const HostProgram& program, const std::vector<std::string>& cubins);

}  // namespace cutaway
