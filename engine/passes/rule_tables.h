#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A pass that applies rules, and the rules.
struct RuleTable {
    std::string_view pass;  // its name in the pipeline
    std::span<const Rule> rules;
};

/// Every table of the pipeline, in its order.
std::vector<RuleTable> ruleTables();

/// A rewrite of a pass that is written as a function, by the name that Rewriter::begin gets.
struct CodeRule {
    std::string_view pass, name, what;
    /// The nodes that Rewriter::begin may get: names of calls with ", " between them, operators ("aten.cat.default"),
    /// Python functions ("torch.cat") and methods ("Tensor.view"), all that begin alike ("aten.slice.*"); or "call",
    /// "placeholder", "get_attr", "output". Empty: any node. Of all others the pass says nothing, because whoever
    /// explains says this.
    std::string_view starts = {};
    bool whole = false;  // it stands for every rewrite of its pass, by whatever name
};
/// The names, one by one.
std::vector<std::string> startsOf(const CodeRule& rule);
bool startsAt(const CodeRule& rule, const Node& node);
/// What was said of the rule, or else, in the name of the pass, of all its rules; the end if nothing was.
std::vector<Refusal>::const_iterator refusalOf(const std::vector<Refusal>& said, const CodeRule& rule);

/// Those that can be switched off one by one, in the order of the pipeline. Left out: passes whose rewrites belong
/// together, because a graph is functional, or has gradients, as a whole or not at all; these are switched off as
/// passes.
const std::vector<CodeRule>& codeRules();
/// Those passes, each as one rule of its name, for whoever asks why one does nothing at a node.
std::span<const CodeRule> undividedRules();

}  // namespace cutaway
