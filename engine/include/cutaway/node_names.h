#pragma once
// Nodes by the names that people write: "add" in the main graph, "true_graph_0/add" in the body of a cond or its kin,
// as messages name them. Graphs name their nodes each on its own, so one name may stand in several.
#include <string>

#include "cutaway/session.h"

namespace cutaway {

/// The node of that name in the graph at `place`. A name without a graph is the main graph's if it has such a node,
/// else that of the only body that has. Errors: NotFound, with the nodes that there are; InvalidInput if several bodies
/// have it.
Result<NodeKey> findNode(Session& session, const Place& place, const std::string& name);

/// Its name as findNode takes it. NotFound if the graph at `place` has no such node.
Result<std::string> nodeName(Session& session, const Place& place, NodeKey id);

}  // namespace cutaway
