#pragma once
// The host program of a schedule: it is made from loop nests, whoever prints or runs them.
#include <optional>

#include "cutaway/jobs.h"
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
/// forward run. `saved`: of each placeholder of the backward the result of the forward that it is given, or -1.
struct TrainingHalves {
    const ScheduledProgram *forward = nullptr, *backward = nullptr;
    std::vector<int64_t> saved;
};
/// `kernels`: of the forward, then of the backward.
Result<HostProgram> hostProgramOf(const TrainingHalves& halves, const std::vector<LoweredKernel>& kernels);

/// A program before its kernels are compiled: what is shown, built and exported.
struct PlannedProgram {
    std::vector<ScheduledProgram> graphs;  // one, or a forward and its backward
    std::vector<LoweredKernel> kernels;    // of all graphs, in their order
    HostProgram host;
    std::optional<Error> whyNoHost;  // then kernels can be looked at, but the program cannot be run
    /// Of a graph its function in the host program.
    size_t functionOf(size_t graph) const;
};
/// `saved`: of two graphs, as TrainingHalves has it. `plans`: by kernel of the first graph, in place of those that are
/// chosen. Errors: of the schedule; a plan is of no kernel, or does not compute its kernel.
Result<PlannedProgram> planProgram(const std::vector<std::shared_ptr<const Module>>& graphs, std::vector<int64_t> saved,
                                   const TargetInfo& target, const std::map<std::string, LoopPlan>& plans = {},
                                   const Progress& progress = {});

std::optional<size_t> functionNamed(const HostProgram& program, std::string_view name);
/// Whether a result of the function is what the program's backward is given of its forward.
bool isSaved(const HostProgram& program, size_t function, int64_t result);
/// The constants of a program as its graphs hold them.
Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled);
/// The same of each graph as `modules` hold them, which have values where the graphs have recipes.
Result<std::vector<Tensor>> heldConstantsOf(const PlannedProgram& program,
                                            const std::vector<std::shared_ptr<const Module>>& modules);

}  // namespace cutaway
