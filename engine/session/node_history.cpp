#include "engine/session/node_history.h"

#include <algorithm>

#include "engine/ir/diff.h"
#include "engine/session/node_keys.h"

namespace cutaway {
namespace {

/// A node's graph in a snapshot, and the node in it; null for what is not there.
struct NodeInGraph {
    const Module* graph = nullptr;
    const Node* node = nullptr;
    std::string path;
};
NodeInGraph findIn(const Snapshot& module, NodeKey key) {
    auto found = findGraph(*module, key);
    return {found.module, found.module ? found.module->graph().find(found.id) : nullptr, std::move(found.path)};
}

NodeDetails::Life birth(const Step& step, const NodeInGraph& now, bool newGraph) {
    NodeDetails::Life life;
    life.step = step.info.index;
    life.what = "created by " + step.info.name;
    std::string path = now.path;
    const Provenance& provenance = now.node->provenance();
    if (newGraph) {
        life.what += ", with the graph " + path;
        // Nodes that were copied into a new graph keep provenance with the ids of their old graph.
        if (provenance.createdBy != step.pass->name) return life;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    std::string from;
    for (const NodeId origin : provenance.origin) {
        life.related.push_back(keyIn(path, origin));
        if (const Node* node = findIn(step.before, life.related.back()).node)
            from += (from.empty() ? " from " : ", ") + node->name();
    }
    life.what += from;
    return life;
}

NodeDetails::Life death(const Step& step, const NodeInGraph& was, const Module* after) {
    NodeDetails::Life life;
    life.step = step.info.index;
    const std::string& path = was.path;
    if (!after) {
        life.what = "removed by " + step.info.name + ", with the graph " + path;
        return life;
    }
    std::string into;
    for (const Node& node : after->graph().nodes()) {
        const auto& origin = node.provenance().origin;
        if (was.graph->graph().find(node.id()) ||
            std::find(origin.begin(), origin.end(), was.node->id()) == origin.end())
            continue;
        life.related.push_back(keyIn(path, node.id()));
        into += (into.empty() ? "" : ", ") + node.name();
    }
    life.what = into.empty() ? "removed by " + step.info.name : "replaced by " + into + " in " + step.info.name;
    return life;
}

}  // namespace

namespace {

/// Where a split puts the node; empty if the graph that it split does not have it.
std::string sideOf(const Step& split, NodeKey key) {
    if (!findIn(split.before, key).node) return {};
    std::string graphNames;
    for (const auto& [graphName, graph] : split.made)
        if (const Node* node = findIn(graph, key).node)
            graphNames += (graphNames.empty() ? "the " : " and the ") + graphName +
                          (node->isPlaceholder() ? " (as an input)" : "");
    return graphNames.empty() ? "left out by " + split.info.name + ": neither side needs it"
                              : "put into " + graphNames + " by " + split.info.name;
}

}  // namespace

std::vector<NodeDetails::Life> historyOf(const CompileTrace& trace, NodeKey key) {
    std::vector<NodeDetails::Life> lives;
    if (const Node* node = findIn(trace.input, key).node) {
        if (const auto& history = node->provenance().history)
            for (auto step = history->rbegin(); step != history->rend(); ++step)
                lives.push_back(
                    {-1, "in PyTorch: " + step->name + " (" + step->action + " by " + step->pass + ")", {}});
        lives.push_back({-1,
                         "read from the file" +
                             (node->provenance().sourceName.empty() || node->provenance().sourceName == node->name()
                                  ? ""
                                  : " as " + node->provenance().sourceName),
                         {}});
    }
    for (const Step& step : trace.steps) {
        if (!step.made.empty())
            if (std::string side = sideOf(step, key); !side.empty())
                lives.push_back({step.info.index, std::move(side), {}});
        if (step.before == step.after) continue;
        const NodeInGraph was = findIn(step.before, key), now = findIn(step.after, key);
        if (!was.node && now.node) lives.push_back(birth(step, now, was.graph == nullptr));
        else if (was.node && !now.node) lives.push_back(death(step, was, now.graph));
        else if (was.node && !sameButForInputs(*was.node, *now.node))
            lives.push_back({step.info.index, "edited by " + step.info.name, {}});
    }
    return lives;
}

}  // namespace cutaway
