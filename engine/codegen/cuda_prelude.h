#pragma once
// The fixed part of generated CUDA C++. NVRTC may be there without the toolkit's headers, so nothing is included:
// halves are converted by PTX, and integers have the names that they have on Linux. Only what a program uses is
// printed.
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway {

/// Whether the prelude has what the text of an operation calls, by the name under which printers collect it
/// ("minmax", "f_exp").
bool hasCudaHelper(std::string_view name);
/// Declarations of these helpers and of all that they need, in a fixed order.
std::string cudaPrelude(const std::set<std::string>& helpers);

/// What NVRTC is told, for devices of this compute capability (90): the numbers of a kernel depend on it, so it is part
/// of whatever a compiled kernel is known by. Products and sums round twice, as in eager PyTorch and in kernels for
/// CPUs; division, roots and small numbers are NVRTC's default, which is exact and keeps subnormals.
enum class CudaCode : uint8_t { Cubin, Ptx };
std::vector<std::string> cudaOptions(int capability, CudaCode code = CudaCode::Cubin);

}  // namespace cutaway
