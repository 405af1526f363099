#pragma once
#include "engine/rewrite/rule.h"

namespace cutaway {

/// A pass that applies rules, and the rules.
struct RuleTable {
    std::string_view pass;   // its name in the pipeline
    std::span<const Rule> rules;
};

/// Every table of the pipeline, in its order.
std::vector<RuleTable> ruleTables();

}  // namespace cutaway
