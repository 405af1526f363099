#pragma once
// A function of a host program as C++ (host_printer.h).
#include "engine/host/host_program.h"

namespace cutaway {

/// `int32_t name(ct::Frame& c, const CtTensor* in, CtTensor* out)`. Throws SizeError for a size that has no form in
/// C++.
std::string printFunction(const HostProgram& program, size_t function, const std::string& name);

}  // namespace cutaway
