// Kernels and nests of a schedule, interpreted: no compiler and no library has a part in what they give.
#include "engine/loops/interpret.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/schedule/schedule.h"
#include "tests/engine/lowering_harness.h"

namespace cutaway::testing {
namespace {

class InterpretedKernels final : public KernelCode {
  public:
    InterpretedKernels(const ScheduledProgram& program, Interpreted how, uint32_t seed)
        : m_program(&program), m_how(how), m_seed(seed) {}

    /// The first launch runs all of the kernel.
    Result<int> launch(const KernelLaunch& what) const override {
        if (what.launch > 0) return 0;
        const PlannedKernel& planned = m_program->kernels[what.kernel];
        const std::vector<void*> pointers(what.buffers, what.buffers + planned.kernel.buffers.size());
        std::map<std::string, int64_t> named;
        for (size_t i = 0; i < planned.kernel.sizes.size(); ++i) named[planned.kernel.sizes[i]] = what.sizes[i];
        if (m_how == Interpreted::Kernels) return static_cast<int>(interpretKernel(planned.kernel, pointers, named));
        const LoweredKernel lowered = lowerLoops(planned.kernel, planned.plan, *m_program->target);
        const KernelFault fault = m_how == Interpreted::Nests ? interpretNests(lowered, pointers, named, 7)
                                                              : interpretLanes(lowered, pointers, named, m_seed);
        return static_cast<int>(fault);
    }

  private:
    const ScheduledProgram* m_program;
    Interpreted m_how;
    uint32_t m_seed;
};

}  // namespace

Way interpretedKernels(Interpreted how, const TargetInfo& target, uint32_t seed,
                       const std::shared_ptr<DeviceMemory>& device) {
    constexpr const char* kNames[] = {"kernels, interpreted", "nests, interpreted", "lanes, interpreted"};
    return {kNames[static_cast<size_t>(how)],
            [how, seed, target, device](const std::shared_ptr<const Module>& module,
                                        const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
                CT_TRY(const ScheduledProgram program, scheduleModule(module, target));
                CT_TRY(HostProgram host, hostProgramOf(program));
                CT_TRY(std::vector<Tensor> constants, constantsOf(host, program));
                for (HostStep& step : host.functions[0].steps)
                    if (step.kind == HostStepKind::Library) step.kind = HostStepKind::Reference;
                std::vector<std::vector<Tensor>> weights{inputs};
                const std::shared_ptr<DeviceMemory> memory = device ? device : hostMemory();
                if (!memory->isHost())
                    for (std::vector<Tensor>* const all : {&constants, &weights[0]})
                        for (Tensor& tensor : *all)
                            if (tensor.defined()) {
                                CT_TRY(tensor, onDevice(*memory, tensor));
                            }
                const auto loaded = std::make_shared<LoadedProgram>(
                    std::move(host), std::make_unique<InterpretedKernels>(program, how, seed), std::move(constants),
                    std::move(weights), ProgramOptions{.threads = 1}, memory);
                StatusPage board;
                HostContext context(loaded, 0);
                CT_TRY(HostRun run, context.run(inputs, 0, board));
                if (memory->isHost()) return std::vector<WayRun>{{"once", std::move(run.outputs)}};
                CT_TRY(HostRun again, context.run(inputs, 2, board));
                return std::vector<WayRun>{{"once", std::move(run.outputs)}, {"again", std::move(again.outputs)}};
            }};
}

}  // namespace cutaway::testing
