#pragma once
// Graphs as the value structs of the door.
#include "cutaway/session.h"
#include "cutaway/snapshot.h"
#include "engine/formats/open.h"
#include "engine/ir/module.h"
#include "engine/passes/pass_runner.h"
#include "engine/session/body_ids.h"

namespace cutaway {

NodeInfo describeNode(const Module& module, const Node& node);
/// Bodies of subgraphs stand behind the main graph, with shown ids, as modules of their own name.
UnionGraph describeUnion(const Module& before, const Module& after, BodyIds& ids);
NodeDetails describeDetails(const Module& module, const Node& node);
/// What happened to a node over a run: created, edited, replaced, removed, by which pass.
std::vector<NodeDetails::Life> biography(const CompileTrace& trace, BodyIds& ids, NodeId id);
GraphSummary summarize(const std::string& name, const Module& module);
ModelInfo describeModel(const std::string& path, const Module& module);
/// The first graph in full, the others by their operators, and what is in the file beside them.
ModelInfo describeFile(const OpenedFile& file);

}  // namespace cutaway
