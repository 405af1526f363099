#pragma once
// The pass behind which a graph computes something else: what bisecting a recorded run finds first, in a process that
// has the run at hand already.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/passes/pass_runner.h"

namespace cutaway {

/// Whether the results of a graph are wrong.
using IsWrong = std::function<bool(const Snapshot& graph)>;

/// The step between `first` and `end` with whose graph before it the results are right, and with the one after it
/// wrong: a binary search. `expected`, if not empty ("joint/pad_mm"): steps of that pass alone are looked at. None:
/// the first graph is wrong already, the last one right, or another pass than the expected one is to blame.
std::optional<int> guiltyStep(const CompileTrace& trace, int first, int end, const std::string& expected,
                              const IsWrong& isWrong);
/// "joint/pad_mm".
std::string passOf(const Step& step);

/// Calls of the graph that the run began with, by name, where a step's rewrites acted: of the first, of the last, and
/// all that the step changed. Groups without any are left out.
std::vector<std::vector<std::string>> callsChangedBy(const CompileTrace& trace, int step);

}  // namespace cutaway
