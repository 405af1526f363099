#pragma once
// Graphs as the value structs of the public API.
#include "cutaway/session.h"
#include "cutaway/snapshot.h"
#include "engine/formats/open.h"
#include "engine/ir/module.h"
#include "engine/passes/pass_runner.h"
#include "engine/session/node_keys.h"

namespace cutaway {

std::string typeText(const ValueType& type);
/// `position`: how many placeholders stand before it.
NodeInfo describeAt(const Module& module, const Node& node, size_t position);
NodeInfo describeNode(const Module& module, const Node& node);
/// As nodes of that graph.
void putInto(uint32_t graph, NodeInfo& info);
/// Nodes of subgraphs follow those of the main graph, in a module named after the subgraph.
UnionGraph describeUnion(const Module& before, const Module& after);
/// The same of graphs of which ids say nothing, so that nodes are paired by what they are (ir/match.h). `common`: a
/// graph that both came from, whose nodes kept their ids; null if there is none. Nodes have the keys of `after`; those
/// of `before` alone have keys that `after` has not.
UnionGraph describeMatched(const Module& before, const Module& after, const Module* common);
/// The graph alone: all of it is kept.
UnionGraph describeGraph(const Module& module);
/// What computes a node, once the module has a schedule; keys as of the graph alone.
std::optional<NodeDetails::Kernel> describeKernel(const Module& module, const Node& node);
NodeDetails describeDetails(const Module& module, const Node& node);
GraphSummary summarize(const std::string& name, const Module& module);
ModelInfo describeModel(const std::string& path, const Module& module);
/// The first graph in full, of the others their operators, and what else is in the file.
ModelInfo describeFile(const OpenedFile& file);

}  // namespace cutaway
