#pragma once
// Runs kernels and nests without a compiler: the judges of everything behind them. A kernel is run as it reads, element
// by element, whatever its plan; nests are run statement by statement, in vectors, as they would be printed.
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
/// them. Workspace is made and filled with what is no value.
KernelFault interpretNests(const LoweredKernel& kernel, std::span<void* const> buffers,
                           const std::map<std::string, int64_t>& sizes, int64_t chunk = 0);

}  // namespace cutaway
