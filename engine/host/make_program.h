#pragma once
// The host program of a schedule: it is made from loop nests, whoever prints or runs them.
#include <optional>

#include "engine/host/host_program.h"
#include "engine/schedule/program.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// The kernels of the schedule as code, then those of the graphs that its calls run.
std::vector<LoweredKernel> lowerKernels(const ScheduledProgram& scheduled);
/// The host program of a graph: function 0 is "run", others are graphs that calls run. `kernels`: of lowerKernels.
/// Errors of makeHostFunction.
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<LoweredKernel>& kernels);
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled);

/// A program for training: function 0 is "forward"; the function "backward" comes behind the graphs that calls of the
/// forward run. `saved`: which result of the forward each placeholder of the backward is given; -1: none.
struct TrainingHalves {
    const ScheduledProgram *forward = nullptr, *backward = nullptr;
    std::vector<int64_t> saved;
};
/// `kernels`: of the forward, then of the backward.
Result<HostProgram> hostProgramOf(const TrainingHalves& halves, const std::vector<LoweredKernel>& kernels);

std::optional<size_t> functionNamed(const HostProgram& program, std::string_view name);
/// Whether a result of the function is what the program's backward is given of its forward.
bool isSaved(const HostProgram& program, size_t function, int64_t result);
/// The constants of a program as its graphs hold them.
Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled);
/// The same, put among the program's: those of a function and of the graphs that its calls run. `module`: the
/// function's graph, or one that has values where that has recipes.
Result<void> addHeldConstants(const HostProgram& program, const ScheduledProgram& scheduled, const Module& module,
                              const std::string& function, std::vector<Tensor>& constants);

}  // namespace cutaway
