#pragma once
// When a case of an operator's definition counts: "NAME is None", "NAME == 2", "rank(NAME) > 3", "dtype_of(NAME) ==
// torch.uint8", "NAME", "not NAME", and several with "and" between.
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/infer.h"

namespace cutaway {

struct CaseCondition {
    std::string name, of, relation, literal;  // of: "", "rank" or "dtype_of"
};

/// The parts of a condition; none of an empty one. Errors: what has none of the forms.
Result<std::vector<CaseCondition>> readConditions(std::string_view text);

bool conditionHolds(const CaseCondition& condition, const CallView& call);

}  // namespace cutaway
