#include "engine/session/time_graph.h"

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/text/parse.h"

namespace cutaway {

std::optional<double> timeOnCpu(const std::string& graph) {
    auto parsed = parseText(graph);
    if (!parsed) return std::nullopt;
    const Snapshot module = std::move(*parsed);
    const auto program = buildCpu(module);
    const auto inputs = randomInputs(*module, 1);
    if (!program || !inputs) return std::nullopt;
    constexpr int kRuns = 25;
    const auto run = runCpu(*program, *inputs, {.repeat = kRuns});
    return run ? std::optional(run->medianMilliseconds) : std::nullopt;
}

}  // namespace cutaway
