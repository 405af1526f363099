#pragma once
// Times small graphs for passes that measure before they decide (CompileHooks::timeGraph).
#include <optional>
#include <string>

#include "engine/loops/target.h"

namespace cutaway {

/// Milliseconds of one run of the graph on the target, on random inputs, compiled as any graph is and run in the
/// worker: on the CPU the median of many runs, on a GPU, as PyTorch's benchmarker takes it, the best with a cold cache.
/// None if it does not parse, compile or run.
std::optional<double> timeOn(const TargetInfo& target, const std::string& graph);

}  // namespace cutaway
