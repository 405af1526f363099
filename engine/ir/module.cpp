#include "engine/ir/module.h"

namespace cutaway {

Module::Module(const Module& other)
    : name(other.name), inputs(other.inputs), outputs(other.outputs), tensors(other.tensors), symbols(other.symbols),
      origin(other.origin), m_graph(other.m_graph->clone()) {
    subgraphs.reserve(other.subgraphs.size());
    for (const auto& [key, body] : other.subgraphs) subgraphs.emplace_back(key, std::make_unique<Module>(*body));
}

Module* Module::subgraph(std::string_view wanted) const {
    for (const auto& [key, body] : subgraphs)
        if (key == wanted) return body.get();
    return nullptr;
}

}  // namespace cutaway
