#include "engine/host/plan_program.h"

#include <algorithm>

#include "engine/host/make_host.h"
#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

/// The program with these plans in place of the chosen ones.
Result<void> replan(ScheduledProgram& program, const std::map<std::string, LoopPlan>& plans) {
    for (const auto& given : plans) {  // not a structured binding: the lambda below reads it (clang 14)
        const auto& [name, plan] = given;
        const auto at = std::find_if(program.kernels.begin(), program.kernels.end(),
                                     [&](const PlannedKernel& k) { return k.kernel.name == given.first; });
        if (at == program.kernels.end()) return Error{ErrorCode::NotFound, "there is no kernel '" + name + "'", {}, {}};
        if (const std::string problem = problemOf(plan, at->kernel, *program.target); !problem.empty())
            return invalidInput(problem, "the plan of " + name);
        at->plan = plan;
    }
    return {};
}

}  // namespace

Result<PlannedProgram> planProgram(const std::vector<std::shared_ptr<const Module>>& graphs, std::vector<int64_t> saved,
                                   const TargetInfo& target, const std::map<std::string, LoopPlan>& plans,
                                   const Progress& progress) {
    PlannedProgram program;
    for (const std::shared_ptr<const Module>& graph : graphs) {
        CT_TRY(ScheduledProgram scheduled, scheduleModule(graph, target, progress));
        if (program.graphs.empty()) CT_TRY_VOID(replan(scheduled, plans));
        program.graphs.push_back(std::move(scheduled));
    }
    CT_TRY_VOID(withCheckedSizes("the kernels", {}, [&]() -> Result<void> {
        for (const ScheduledProgram& graph : program.graphs)
            for (LoweredKernel& kernel : lowerKernels(graph)) program.kernels.push_back(std::move(kernel));
        return {};
    }));
    auto host =
        graphs.size() == 1
            ? hostProgramOf(program.graphs[0], program.kernels)
            : hostProgramOf(TrainingHalves{&program.graphs[0], &program.graphs[1], std::move(saved)}, program.kernels);
    if (host) program.host = std::move(*host);
    else program.whyNoHost = std::move(host).error();
    return program;
}

size_t PlannedProgram::functionOf(size_t graph) const {
    return graph == 0 ? 0 : *functionNamed(host, kBackwardFunction);
}

Result<std::vector<Tensor>> heldConstantsOf(const PlannedProgram& program,
                                            const std::vector<std::shared_ptr<const Module>>& modules) {
    std::vector<Tensor> constants(program.host.constants.size());
    for (size_t i = 0; i < program.graphs.size(); ++i)
        CT_TRY_VOID(addHeldConstants(program.host, program.graphs[i], *modules[i],
                                     program.host.functions[program.functionOf(i)].name, constants));
    return constants;
}

}  // namespace cutaway
