#pragma once
// Runs kernels and nests without a compiler: the judges of everything behind them. A kernel is run as it reads, element
// by element, whatever its plan; nests are run statement by statement, in vectors, as they would be printed.
#include <functional>
#include <map>
#include <span>

#include "engine/loops/cell.h"
#include "engine/loops/loop_nest.h"

namespace cutaway {

/// `buffers`: the first element of each buffer of the kernel; `sizes`: the values of its size symbols. Loads outside of
/// memory are the caller's: like compiled kernels, nothing here knows how large a buffer is.
KernelFault interpretKernel(const Kernel& kernel, std::span<void* const> buffers,
                            const std::map<std::string, int64_t>& sizes);
/// The same by the nests, each in pieces of `chunk` steps of its loop over parts (0: at once), as threads would take
/// them. Workspace is made and filled with what is not a value.
KernelFault interpretNests(const LoweredKernel& kernel, std::span<void* const> buffers,
                           const std::map<std::string, int64_t>& sizes, int64_t chunk = 0);
/// The same as a GPU runs them: each lane is a thread, which goes by itself from barrier to barrier. Which lane is
/// next, and how many blocks there are, is made by chance from the seed, so that what is handed from lane to lane
/// without a barrier is found.
KernelFault interpretLanes(const LoweredKernel& kernel, std::span<void* const> buffers,
                           const std::map<std::string, int64_t>& sizes, uint32_t seed);
/// Calls run(buffers) with the kernel's buffers and its workspace, which is made and filled with what is not a value.
void withWorkspace(const LoweredKernel& kernel, std::span<void* const> buffers,
                   const std::map<std::string, int64_t>& sizes, const std::function<void(std::span<void* const>)>& run);

}  // namespace cutaway
