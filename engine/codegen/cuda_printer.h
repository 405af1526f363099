#pragma once
// Prints loop nests as CUDA C++ for NVRTC: the lanes of a vector loop are the threads of a block, the loop over parts
// is the grid. Scalars are computed by every thread; what joins lanes goes through shared memory, in the order of the
// nest, so that results are those of the nest's interpreter but for mathematical functions, which differ on the GPU.
#include <set>

#include "engine/loops/loop_nest.h"

namespace cutaway {

struct CudaKernel {
    struct Launch {
        std::string function;  // named after what it does: the same in every program
        SymInt range;          // steps of the loop over parts: blocks, or elements where the parts are vectors
        int threads = 1;
        int64_t sharedBytes = 0;  // of dynamic shared memory; 0 where arrays of fixed sizes do
    };
    std::vector<Launch> launches;      // one after the other
    std::vector<Workspace> workspace;  // buffers after the kernel's own
    std::string source;                // the functions alone
    std::set<std::string> helpers;     // for cudaPrelude
};
/// Every function is
///   extern "C" __global__ void NAME(void* const* p, const long* s, long begin, long end, int* fault)
/// with p, s and fault in device memory. Any number of blocks is right: each takes what it finds of begin to end.
CudaKernel printCuda(const LoweredKernel& kernel);

/// One program of these functions, each once, helpers first.
std::string cudaFile(const std::vector<CudaKernel>& kernels);

}  // namespace cutaway
