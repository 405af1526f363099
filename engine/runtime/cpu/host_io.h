#pragma once
// Host programs as bytes, for another process of the same build.
#include "engine/host/host_program.h"

namespace cutaway {

std::string serialize(const HostProgram& program);
/// Damaged bytes are an error; every number of a value, kernel, constant or slot is one that the program has.
Result<HostProgram> deserializeHost(std::string_view bytes);

}  // namespace cutaway
