#pragma once
// The pass behind which a graph computes something else: what bisecting a recorded run finds first, in a process that
// has the run at hand already.
#include <functional>
#include <string>

#include "engine/passes/pass_runner.h"

namespace cutaway {

/// Whether the results of a graph are wrong.
using IsWrong = std::function<bool(const Snapshot& graph)>;

/// "joint/pad_mm": the pass of a step between `first` and `end` with whose graph before it the results are right, and
/// with the one after it wrong: a binary search. `expected`, if not empty: that pass alone is looked at. Empty: there
/// is none, since the first graph is wrong already, the last one right, or another pass than the expected one is to
/// blame.
std::string guiltyPass(const CompileTrace& trace, int first, int end, const std::string& expected,
                       const IsWrong& isWrong);

}  // namespace cutaway
