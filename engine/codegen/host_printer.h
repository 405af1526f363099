#pragma once
// Prints a host program as C++ with the C interface of runtime/exported/program.h: what the interpreter of host
// programs (runtime/cpu/host_context.h) does, as straight code. Nothing of the engine is in it but the two headers that
// exported programs carry. Identifiers are numbers; names of the model stand in literals only.
#include <map>

#include "cutaway/result.h"
#include "engine/host/host_program.h"

namespace cutaway {

struct HostPrinting {
    std::string name = "ct";                       // what functions of the C interface begin with: an identifier
    std::vector<std::string> outputs;              // their names; without them those of the nodes that made them
    std::map<std::string, std::string> originals;  // of weights, by their parameters' names: what the model calls them
};
/// The text of the function "run" and of the graphs that its calls run. Errors: calls of engine functions, which no
/// exported program can have, by name.
Result<std::string> printHost(const HostProgram& program, const HostPrinting& how = {});

}  // namespace cutaway
