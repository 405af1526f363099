#pragma once
// Nodes by the names that people write and messages show: "add" in the main graph, "true_graph_0/add" in a subgraph (a
// branch of cond, the body of a loop). Names are unique within a graph only.
#include <string>

#include "cutaway/session.h"

namespace cutaway {

/// The node of that name in the graph at `place`. A name without a graph means the main graph's node; if it has none,
/// that of the only subgraph that has one. Errors: NotFound, with the nodes that there are; InvalidInput if several
/// subgraphs have it.
Result<NodeKey> findNode(Session& session, const Place& place, const std::string& name);

/// Its name as findNode takes it. NotFound if the graph at `place` has no such node.
Result<std::string> nodeName(Session& session, const Place& place, NodeKey id);

}  // namespace cutaway
