#pragma once
// What cannot be decided by a rule about padding a product: known decisions, those of a file, and measuring both ways
// (spec: passes PAD-4 steps 4 and 6, PAD-5, PAD-6). Decisions and times of products as they are go where
// CompileServices::recall and remember keep them, or are remembered as long as the program runs.
#include <optional>
#include <string>

#include "engine/passes/joint/padding_decision.h"

namespace cutaway {

struct PaddingAnswer {
    std::optional<bool> pays;  // none: nobody knows
    std::string note;          // how that is known, or what would decide it
};
/// `settings`: those of pad_mm. Times graphs with CompileServices::timeGraph.
PaddingAnswer decidePadding(const Match& match, ProductKind kind, const OptionalPass& settings);

}  // namespace cutaway
