#pragma once
#include "cutaway/result.h"
#include "engine/ir/graph.h"

namespace cutaway {

/// Puts every node after its operands, moving as little as possible: nodes wait for their last unready operand and
/// follow it (spec: pattern-matcher §10). An ordered graph stays as it is. True if anything moved. It is a bug to pass a
/// graph with a cycle.
bool sortTopologically(Graph& graph);

/// Infers the types of all nodes after `changed` that depend on it, because its strides, dtype or device are new. A
/// view that the new strides no longer allow becomes a reshape. Errors name the call that no longer types.
Result<void> retypeReaders(Graph& graph, Node& changed);

}  // namespace cutaway
