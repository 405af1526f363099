#pragma once
// Times small graphs for passes that measure before they decide (CompileServices::timeGraph).
#include <optional>
#include <string>

namespace cutaway {

/// Median milliseconds of one run of the graph on the CPU, on random inputs, compiled as any graph is and run in the
/// worker. None if it does not parse, compile or run.
std::optional<double> timeOnCpu(const std::string& graph);

}  // namespace cutaway
