#include "engine/session/node_keys.h"

#include "engine/support/hash.h"

namespace cutaway {
namespace {

struct NodeBody {
    std::string path, name;
};
void listBodies(const Module& module, const std::string& path, std::vector<NodeBody>& out) {
    for (const auto& [name, body] : module.subgraphs) {
        out.push_back({bodyPath(path, name), name});
        listBodies(*body, out.back().path, out);
    }
}

template <class M>
NodeLocation<M> find(M& module, const std::string& path, NodeKey key) {
    if (graphNumber(path) == graphOf(key)) return {&module, path, nodeOf(key)};
    for (auto& [name, body] : module.subgraphs)
        if (NodeLocation<M> inside = find<M>(*body, bodyPath(path, name), key); inside.module) return inside;
    return {};
}

}  // namespace

std::string bodyPath(const std::string& outer, const std::string& name) {
    return outer.empty() ? name : outer + "/" + name;
}

uint32_t graphNumber(const std::string& path) {
    if (path.empty()) return 0;
    // The highest number is left to NodeKey::None.
    const auto number = static_cast<uint32_t>(Hasher().add(path).finish().low % 0xFFFFFFFEu);
    return number + 1;
}

NodeLocation<const Module> findGraph(const Module& module, NodeKey key) { return find(module, "", key); }
NodeLocation<Module> findGraph(Module& module, NodeKey key) { return find(module, "", key); }

std::vector<NodeKey> lineKeys(const Module& module, const PrintedText& text) {
    std::vector<NodeBody> bodies;
    listBodies(module, "", bodies);
    std::vector<NodeKey> keys;
    keys.reserve(text.lineNodes.size());
    // Bodies follow their graph, in their order, each after an empty line.
    size_t next = 0, start = 0;
    bool empty = false;
    uint32_t graph = 0;
    for (const NodeId node : text.lineNodes) {
        const size_t end = std::min(text.text.find('\n', start), text.text.size());
        std::string_view line = std::string_view(text.text).substr(start, end - start);
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (empty && next < bodies.size() && line.starts_with("def " + bodies[next].name + "("))
            graph = graphNumber(bodies[next++].path);
        empty = line.empty();
        keys.push_back(nodeKey(graph, node));
        start = std::min(end + 1, text.text.size());
    }
    return keys;
}

}  // namespace cutaway
