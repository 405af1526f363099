#pragma once
// From graphs to a program whose kernels are not compiled yet: what is shown, built and exported.
#include "cutaway/jobs.h"
#include "engine/host/make_program.h"

namespace cutaway {

/// A program before its kernels are compiled: of one graph, or of a forward and its backward.
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
/// The constants of a program, by graph, as `modules` hold them: with values where the graphs have recipes.
Result<std::vector<Tensor>> heldConstantsOf(const PlannedProgram& program,
                                            const std::vector<std::shared_ptr<const Module>>& modules);

}  // namespace cutaway
