#pragma once
// Prints loop nests as CUDA C++ for NVRTC: the lanes of a vector loop are the threads of a block, the loop over parts
// is the grid. Scalars are computed by every thread; what joins lanes goes through shared memory, in the order of the
// nest, so that results are those of the nest's interpreter but for mathematical functions, which differ on the GPU.
#include "cutaway/result.h"
#include "engine/loops/loop_nest.h"

namespace cutaway {

struct CudaKernel {
    std::string source;  // a whole file
    struct Launch {
        std::string function;
        SymInt range;  // steps of the loop over parts: blocks, or elements where the parts are vectors
        int threads = 1;
    };
    std::vector<Launch> launches;
    std::vector<Workspace> workspace;
};
/// Every function is
///   extern "C" __global__ void NAME(void* const* p, const long* s, long begin, long end, int* fault)
/// with p, s and fault in device memory. Errors: Unsupported for element types that it does not print yet (f16, bf16).
Result<CudaKernel> printCuda(const LoweredKernel& kernel);

}  // namespace cutaway
