#pragma once
// From what is scheduled to the host program.
#include "engine/host/host_program.h"
#include "engine/schedule/program.h"

namespace cutaway {

/// Names of a program's entry functions: of a graph, and of the two halves of one for training.
inline constexpr const char *kRunFunction = "run", *kForwardFunction = "forward", *kBackwardFunction = "backward";

/// A graph's place in a program.
struct HostSource {
    std::string name;  // "run"
    const ScheduledProgram* program = nullptr;
    std::vector<size_t> kernels;  // of each of its kernels the number in the host program
    /// Of the graphs that its calls run the names of the functions.
    std::map<std::string, std::string> functions;
    /// Of a backward, for each placeholder: HostParameter::saved and shared. Empty of all others.
    std::vector<std::pair<int64_t, int64_t>> savedInputs = {};
};
/// One function of a program that has its kernels already; constants are added to the program's. Errors, by node:
/// results of several values passed on as a whole, arguments that no compiled graph can pass, results that are
/// neither tensors nor numbers of sizes, sizes that follow neither from the inputs nor from what a step returns.
Result<HostFunction> makeHostFunction(const HostSource& source, HostProgram& program);

/// A constant of a function by the name that it has in the program.
std::string hostConstant(const std::string& function, const std::string& target);

}  // namespace cutaway
