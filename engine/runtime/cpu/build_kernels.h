#pragma once
// From printed kernels to functions in shared libraries: those of earlier builds are found, the others are compiled, in
// as many files at once as there are cores.
#include "engine/cache/kernel_cache.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/runtime/cuda/requests.h"

namespace cutaway {

struct KernelBuild {
    std::string folder;  // where sources and libraries go
    CompilerOptions compiler;
    std::shared_ptr<KernelCache> store;  // null: nothing is looked up or kept
    std::optional<CudaFound> gpu = {};   // NVRTC compiles, for this GPU; without one for the target's (sm_90)
};
struct BuiltKernels {
    std::vector<std::string> libraries;  // of each kernel its path
    std::string log;                     // commands, and what compilers said
    double seconds = 0;                  // waited for compilers
};
/// Errors: the compiler's (compileCpp).
Result<BuiltKernels> buildKernels(const std::vector<PrintedKernel>& kernels, const KernelBuild& how,
                                  const Progress& progress = {});

}  // namespace cutaway
