#pragma once
// Steps and rewrites by names that mean the same in the next process, a session file, a report and after --step.
#include <optional>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "cutaway/trace.h"

namespace cutaway {

/// A step as text names it: "TRACK/STAGE/PASS#K:R". TRACK, or TRACK/STAGE, may be left out, and so may "#K" and ":R".
struct StepKey {
    std::string graphName, stage, pass;  // empty: any
    std::optional<int> occurrence;       // from 1
    std::optional<int> rewrites;         // how many of the step's; none: all
    bool operator==(const StepKey&) const = default;

    std::string text() const;
};

/// Errors: no pass, a part without a name, a number that is none.
Result<StepKey> parseStepKey(const std::string& text);

struct StepPosition {
    int index = -1;
    std::optional<int> rewrites;
};
/// The step that the text names: a key, an unambiguous part of one, a pass's name (its first step), or the number that
/// `steps` shows. Errors: no such step, with the nearest name; several that differ in graph or stage, with their keys;
/// more rewrites than the step has.
Result<StepPosition> findStep(const std::vector<StepInfo>& steps, const std::string& text);

}  // namespace cutaway
