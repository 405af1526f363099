#pragma once
// Passes that go wrong because a test asks for it (support/fault_points.h).
#include "engine/passes/pass.h"

namespace cutaway {

/// Called when the pass has run: makes the graph wrong in the rewrites of the rules that faults name, and, if one names
/// the pass, by a rewrite "fault" of its own behind the others. `before`: the graph that the pass was given. Wrong: the
/// readers of a floating value that the rewrite made, else of one beside it, read its erfc, which equals almost no
/// value, is finite for all and has no rules; Nan: NaN in its place; Invalid: the value's type has a stride too many.
/// Graphs in which a rewrite touched no floating value stay as they are. True if anything changed.
Result<bool> spoilGraph(const Pass& pass, Module& module, const Module& before, Rewriter& rewriter);

}  // namespace cutaway
