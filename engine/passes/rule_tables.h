#pragma once
#include "engine/passes/pass.h"

namespace cutaway {

/// A pass that applies rules, and the rules.
struct RuleTable {
    std::string_view pass;  // its name in the pipeline
    std::span<const Rule> rules;
};

/// Every table of the pipeline, in its order.
const std::vector<RuleTable>& ruleTables();

/// A rewrite of a pass that is written as a function, with its pass.
struct CodeRule : CodeRewrite {
    std::string_view pass;
    bool whole = false;  // stands for all rewrites of its pass (Pass::undivided)
};
/// The names, one by one.
std::vector<std::string> startsOf(const CodeRule& rule);
bool startsAt(const CodeRule& rule, const Node& node);
/// The refusal of the rule, or else one that the pass gave for all its rules; the end if there is none.
std::vector<Refusal>::const_iterator refusalOf(const std::vector<Refusal>& said, const CodeRule& rule);

/// Those that can be switched off one by one, in the order of the pipeline.
const std::vector<CodeRule>& codeRules();
/// Passes that are switched off only as a whole (Pass::undivided), each as one rule of its name, to explain why one
/// does nothing at a node.
const std::vector<CodeRule>& undividedRules();

}  // namespace cutaway
