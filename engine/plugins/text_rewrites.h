#pragma once
// What a plugin's pass returned, as rewrites of the graph that it was given. Lines that came back as they were are the
// same nodes and are not parsed; what differs falls into groups that do not depend on each other, and each is one
// rewrite. Leaves alone: whether the graph verifies, which the pass runner asks of every pass.
#include <string>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// How the plugin calls the rewrite that makes or removes a node.
struct NamedRewrite {
    std::string node, rule, why;
};

/// The text that a plugin gets.
std::string pluginText(const Module& module);

/// Makes the module what `after` says, through the rewriter; true if anything changed. `before` is pluginText(module).
/// A call that the text keeps under its name and operator keeps its id. `rule`: the name of rewrites that nothing else
/// names. Errors, and nothing is said of what is in the module then: text that does not parse; another signature; an
/// operator that neither Cutaway nor the graph knows; a value that is read before it is computed, computed twice, or
/// not at all; a type that the operator does not give; a graph added or left out.
Result<bool> rewriteByText(Module& module, std::string_view before, std::string_view after, Rewriter& rewriter,
                           std::string_view rule, std::string_view why, const std::vector<NamedRewrite>& named);

}  // namespace cutaway
