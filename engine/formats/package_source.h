#pragma once
// What PyTorch's generated C++ says of a compiled model: the lines that its cpp_wrapper writes, 2.11 to 2.15 alike.
#include <functional>
#include <set>
#include <string_view>

#include "cutaway/packages.h"

namespace cutaway {

/// Adds inputs, outputs, constants and calls of a wrapper's text. `isOperator`: whether ATen has an operator of that
/// name, which tells where names end in cpp_fused_amax_native_layer_norm_0.
void readWrapperSource(std::string_view text, const std::function<bool(std::string_view)>& isOperator,
                       PackagedModel& model);
/// The sources of kernels that a text defines, by name; Triton kernels stand in comments or as strings.
std::vector<std::pair<std::string, std::string>> kernelSources(std::string_view text);
/// The operators that a kernel's name lists.
std::vector<std::string> fusedOperators(std::string_view kernel,
                                        const std::function<bool(std::string_view)>& isOperator);

}  // namespace cutaway
