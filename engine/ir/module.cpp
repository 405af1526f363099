#include "engine/ir/module.h"

namespace cutaway {

Module::Module(const Module& other)
    : name(other.name),
      inputs(other.inputs),
      outputs(other.outputs),
      tensors(other.tensors),
      recipes(other.recipes),
      symbols(other.symbols),
      origin(other.origin),
      plan(other.plan),
      m_graph(other.m_graph->clone()) {
    subgraphs.reserve(other.subgraphs.size());
    for (const auto& [key, body] : other.subgraphs) subgraphs.emplace_back(key, std::make_unique<Module>(*body));
}

Module* Module::subgraph(std::string_view wanted) const {
    for (const auto& [key, body] : subgraphs)
        if (key == wanted) return body.get();
    return nullptr;
}

Module* Module::body(std::string_view path) {
    Module* now = this;
    for (size_t start = 0; now != nullptr && start < path.size();) {
        const size_t end = std::min(path.find('/', start), path.size());
        now = now->subgraph(path.substr(start, end - start));
        start = end + 1;
    }
    return now;
}

}  // namespace cutaway
