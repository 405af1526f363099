// Kernels and nests of a schedule, interpreted: no compiler and no library has a part in what they give.
#include "engine/codegen/cpp_printer.h"
#include "engine/loops/interpret.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/schedule/schedule.h"
#include "tests/engine/lowering_harness.h"

namespace cutaway::testing {
namespace {

class InterpretedKernels final : public KernelCode {
  public:
    InterpretedKernels(const ScheduledProgram& program, bool nests) : m_program(&program), m_nests(nests) {}

    /// The first launch runs all of the kernel.
    int run(size_t kernel, size_t launch, void* const* buffers, const std::vector<int64_t>& sizes, int64_t begin,
            int64_t) const override {
        if (launch > 0 || begin > 0) return 0;
        const PlannedKernel& planned = m_program->kernels[kernel];
        const std::vector<void*> pointers(buffers, buffers + planned.kernel.buffers.size());
        std::map<std::string, int64_t> named;
        for (size_t i = 0; i < sizes.size(); ++i) named[planned.kernel.sizes[i]] = sizes[i];
        const KernelFault fault =
            m_nests ? interpretNests(lowerLoops(planned.kernel, planned.plan, *m_program->target), pointers, named, 7)
                    : interpretKernel(planned.kernel, pointers, named);
        return static_cast<int>(fault);
    }

  private:
    const ScheduledProgram* m_program;
    bool m_nests;
};

}  // namespace

Way interpretedKernels(bool nests, const TargetInfo& target) {
    return {nests ? "nests, interpreted" : "kernels, interpreted",
            [nests, target](const std::shared_ptr<const Module>& module,
                            const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
                CT_TRY(const ScheduledProgram program, scheduleModule(module, target));
                std::vector<PrintedKernel> printed;
                for (const PlannedKernel& own : program.kernels)
                    // C++ for CPUs tells the host program what it calls; what is called interprets the plan.
                    printed.push_back(printCpp(lowerLoops(
                        own.kernel, target == kCpuTarget ? own.plan : choosePlan(own.kernel, kCpuTarget), kCpuTarget)));
                CT_TRY(HostProgram host, hostProgramOf(program, printed));
                CT_TRY(std::vector<Tensor> constants, constantsOf(host, program));
                for (HostStep& step : host.functions[0].steps)
                    if (step.kind == HostStepKind::Library) step.kind = HostStepKind::Reference;
                const auto loaded = std::make_shared<LoadedProgram>(
                    std::move(host), std::make_unique<InterpretedKernels>(program, nests), std::move(constants),
                    std::vector<std::vector<Tensor>>{inputs}, ProgramOptions{.threads = 1});
                Board board;
                CT_TRY(HostRun run, HostContext(loaded, 0).run(inputs, 0, board));
                return std::vector<WayRun>{{"once", std::move(run.outputs)}};
            }};
}

}  // namespace cutaway::testing
