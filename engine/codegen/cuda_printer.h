#pragma once
// Prints loop nests as CUDA C++ for NVRTC: the lanes of a vector loop are the threads of a block, the loop over parts
// is the grid. Scalars are computed by every thread; what joins lanes goes through shared memory, in the order of the
// nest, so that results are those of the nest's interpreter but for mathematical functions, which differ on the GPU.
#include "engine/codegen/cpp_printer.h"

namespace cutaway {

/// Every function is
///   extern "C" __global__ void NAME(List<void*, N> p, List<long, M> s, long begin, long end, int* fault)
/// where the lists hold buffers and sizes by value, one at least, so that a kernel reads no table before it begins.
/// Any number of blocks is right: each takes what it finds of begin to end. Where arrays do not fit into fixed shared
/// memory, NAME_shared is the number of bytes that a launch asks for.
PrintedKernel printCuda(const LoweredKernel& kernel);

/// One program of these functions, each once, helpers first.
std::string cudaFile(const std::vector<PrintedKernel>& kernels);

}  // namespace cutaway
