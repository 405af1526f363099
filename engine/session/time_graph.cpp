#include "engine/session/time_graph.h"

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/text/parse.h"

namespace cutaway {

std::optional<double> timeOn(const TargetInfo& target, const std::string& graph) {
    auto parsed = parseText(graph);
    if (!parsed) return std::nullopt;
    const Snapshot module = std::move(*parsed);
    const bool onGpu = target.device.type == DeviceType::Cuda;
    const auto program = buildCpu(module, {.target = &target});
    const auto inputs = randomInputs(*module, 1);
    if (!program || !inputs) return std::nullopt;
    constexpr int kRuns = 25;
    const auto run = runCpu(*program, *inputs, {.repeat = kRuns, .cold = onGpu});
    if (!run) return std::nullopt;
    return onGpu ? run->minMilliseconds : run->medianMilliseconds;
}

}  // namespace cutaway
