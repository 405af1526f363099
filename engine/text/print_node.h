#pragma once
// The parts of a printed line: values, calls, types. Shared by the short form (print.cpp) and the runnable one
// (runnable.cpp).
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/ir/module.h"

namespace cutaway::fxtext {

/// Writes one graph's nodes; with `runnable` operators as torch.ops.*, and names that are valid Python.
class NodePrinter {
  public:
    explicit NodePrinter(const Graph* graph = nullptr, bool runnable = false) : m_graph(graph), m_runnable(runnable) {}

    std::string name(const Node& node) const;
    void value(std::string& out, const Argument& argument) const;
    std::string value(const Argument& argument) const {
        std::string out;
        value(out, argument);
        return out;
    }
    /// What stands right of '='.
    std::string expression(const Node& node) const;
    /// The type between quotes, empty if there is none to write. Strides and device are written out where leaving them
    /// to the operator's rule would give another type.
    std::string annotation(const Node& node) const;
    /// "self.a.b", with getattr for parts that are not identifiers.
    static std::string attribute(std::string_view path);

  private:
    std::string newAnnotation(const Node& node) const;
    std::string opName(const Op& op, bool called) const;
    void call(std::string& out, const Node& node, size_t firstArgument) const;
    bool infix(std::string& out, const Node& node) const;
    void items(std::string& out, const std::vector<Argument>& all) const;

    /// By operator the call whose annotation was last made: graphs repeat themselves.
    struct LastAnnotation {
        const Node* node = nullptr;
        std::string text;
    };

    const Graph* m_graph;
    bool m_runnable;
    mutable std::unordered_map<const Op*, LastAnnotation> m_annotations;
};

}  // namespace cutaway::fxtext
