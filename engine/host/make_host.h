#pragma once
// From what is scheduled to the host program.
#include "engine/host/host_program.h"
#include "engine/schedule/program.h"

namespace cutaway {

/// A graph's place in a program.
struct HostSource {
    std::string name;  // "run"
    const ScheduledProgram* program = nullptr;
    size_t firstKernel = 0;  // its kernels' numbers in the host program begin here
};
/// One function of a program that has its kernels already; constants are added to the program's. Errors, by node:
/// results of several values passed on as a whole, arguments that no compiled graph can pass, results that are no
/// tensors, sizes that follow neither from the inputs nor from what a step returns.
Result<HostFunction> makeHostFunction(const HostSource& source, HostProgram& program);

}  // namespace cutaway
