#include "engine/session/body_ids.h"

#include <algorithm>

namespace cutaway {
namespace {

constexpr uint32_t kShift = 24;
constexpr size_t kBodies = 254;  // 255 would reach NodeId::None

struct Body {
    std::string path, name;
};
void listBodies(const Module& module, const std::string& path, std::vector<Body>& out) {
    for (const auto& [name, body] : module.subgraphs) {
        out.push_back({bodyPath(path, name), name});
        listBodies(*body, out.back().path, out);
    }
}

}  // namespace

std::string bodyPath(const std::string& outer, const std::string& name) {
    return outer.empty() ? name : outer + "/" + name;
}

NodeId BodyIds::shown(const std::string& path, NodeId id) {
    if (path.empty() || id == NodeId::None) return id;
    const std::lock_guard lock(m_mutex);
    auto found = std::find(m_paths.begin(), m_paths.end(), path);
    if (found == m_paths.end()) {
        if (m_paths.size() >= kBodies) return NodeId::None;
        found = m_paths.insert(m_paths.end(), path);
    }
    if (index(id) >> kShift != 0) return NodeId::None;
    return static_cast<NodeId>((static_cast<uint32_t>(found - m_paths.begin() + 1) << kShift) | index(id));
}

BodyIds::Inside BodyIds::inside(NodeId shown) const {
    const uint32_t body = shown == NodeId::None ? 0 : index(shown) >> kShift;
    if (body == 0) return {"", shown};
    const std::lock_guard lock(m_mutex);
    if (body > m_paths.size()) return {"", shown};
    return {m_paths[body - 1], static_cast<NodeId>(index(shown) & ((1u << kShift) - 1))};
}

std::pair<const Module*, NodeId> BodyIds::find(const Module& module, NodeId shown) const {
    const Inside at = inside(shown);
    return {module.body(at.path), at.id};
}

std::pair<Module*, NodeId> BodyIds::find(Module& module, NodeId shown) const {
    const Inside at = inside(shown);
    return {module.body(at.path), at.id};
}

void BodyIds::show(const Module& module, PrintedText& text) {
    std::vector<Body> bodies;
    listBodies(module, "", bodies);
    if (bodies.empty()) return;
    // Bodies follow their graph, in their order, each after an empty line.
    size_t next = 0, start = 0;
    bool empty = false;
    std::string path;
    for (NodeId& node : text.lineNodes) {
        const size_t end = std::min(text.text.find('\n', start), text.text.size());
        std::string_view line = std::string_view(text.text).substr(start, end - start);
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (empty && next < bodies.size() && line.starts_with("def " + bodies[next].name + "("))
            path = bodies[next++].path;
        empty = line.empty();
        node = shown(path, node);
        start = std::min(end + 1, text.text.size());
    }
}

}  // namespace cutaway
