#pragma once
// Whether padding a product pays where no rule decides: by earlier decisions, those of a file, or by measuring both
// ways (spec: passes PAD-4 steps 4 and 6, PAD-5, PAD-6). Decisions, and times of unpadded products, are kept through
// CompileHooks::recall and remember, or as long as the program runs.
#include <optional>
#include <string>

#include "engine/passes/joint/padding_decision.h"

namespace cutaway {

struct PaddingAnswer {
    std::optional<bool> pays;  // none: nobody knows
    std::string note;          // how that is known, or what would decide it
};
/// `settings`: those of pad_mm. Times graphs with CompileHooks::timeGraph.
PaddingAnswer decidePadding(const Match& match, ProductKind kind, const OptionalPass& settings);

}  // namespace cutaway
