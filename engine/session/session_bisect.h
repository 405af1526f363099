#pragma once
// Bisecting a recorded run; engine/trials/bisect.h searches requests that end the process.
#include "cutaway/bisect.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// Errors of the search get a reproducer.
Result<BisectReport> bisectRecorded(Session::State& state, RunId run, const BisectOptions& options,
                                    const BisectWatch& watch, const Progress& progress);

/// "cutaway-cli run model.pt2 --graph main --mode training --fuel 3 REST".
std::string commandLine(const Session::State& state, std::string_view command, CompileRequest request,
                        std::optional<int64_t> fuel, const std::string& rest);

/// What the report says of its culprit and the range that is left: the levels that are known, and after how many tests.
void describeLevels(BisectReport& report);

/// "numbers", "nan", "command", "crash".
std::string_view nameOf(BisectCheck check);

}  // namespace cutaway
