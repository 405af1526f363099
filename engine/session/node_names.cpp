#include "cutaway/node_names.h"

#include "cutaway/guarded.h"
#include "engine/session/session_state.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

struct NamedGraph {
    std::string name;  // with its graph's path
    std::string path;
    NodeId id = NodeId::None;  // in its graph
};
void listNodes(const Module& module, const std::string& path, std::vector<NamedGraph>& out) {
    for (const Node& node : module.graph().nodes()) out.push_back({bodyPath(path, node.name()), path, node.id()});
    for (const auto& [name, body] : module.subgraphs) listNodes(*body, bodyPath(path, name), out);
}

std::string joined(const std::vector<std::string_view>& names) {
    std::string out;
    for (const std::string_view name : names) {
        if (out.size() > 400) return out + ", ...";
        out += (out.empty() ? "" : ", ") + std::string(name);
    }
    return out;
}

}  // namespace

Result<NodeKey> findNode(Session& session, const Place& place, const std::string& name) {
    return guarded([&]() -> Result<NodeKey> {
        Session::State& state = session.state();
        CT_TRY(const Snapshot module, state.snapshot(place));
        std::vector<NamedGraph> nodes;
        listNodes(*module, "", nodes);
        const NamedGraph* only = nullptr;
        std::vector<std::string_view> all, fitting;
        for (const NamedGraph& node : nodes) {
            if (node.name == name) return keyIn(node.path, node.id);
            all.push_back(node.name);
            // The names of the subgraph and of those around it may be left out.
            if (!node.name.ends_with("/" + name)) continue;
            fitting.push_back(node.name);
            only = &node;
        }
        if (fitting.size() > 1)
            return invalidInput("several graphs have a node '" + name + "': say which one: " + joined(fitting));
        if (only) return keyIn(only->path, only->id);
        Error error{
            ErrorCode::NotFound, "no node named '" + name + "' before this step", {}, {"nodes: " + joined(all)}};
        if (std::string near = suggestion(name, all); !near.empty())
            error.notes.insert(error.notes.begin(), std::move(near));
        return error;
    });
}

Result<std::string> nodeName(Session& session, const Place& place, NodeKey key) {
    CT_TRY(const NodeDetails details, session.node(place, key));
    CT_TRY(const Snapshot module, session.state().snapshot(place));
    return bodyPath(findGraph(*module, key).path, details.node.name);
}

}  // namespace cutaway
