#pragma once
#include <string_view>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Whether calls may write to their operands, in the graph as it stands at each question (PST-19). Nobody may read the
/// old value later: neither the operand nor a view that overlaps it, but for who looks at its shape or overwrites it. A
/// graph input may be written to only before a copy_ into it, and what is read behind that copy_ does not count.
class InplaceWrites {
  public:
    explicit InplaceWrites(const Graph& graph, bool parity = false) : m_graph(graph), m_parity(parity) {}

    /// The operand behind calls that have written to it in place and give it back.
    static Node& written(Node& node);
    /// The first copy_ into this input; null if there is none.
    Node* copyInto(const Node& input) const;
    /// Why `write` may not write to `target`, a sentence that names who stands in the way, or "". `result`: the node
    /// that stands for the new value, if there is one; `others`: what else the call reads while it writes.
    std::string unlessWritable(const Node& write, Node& target, const Node* result,
                               const std::vector<const Node*>& others) const;
    /// Whether two views of one memory may have elements in common. Symbolic places may be any.
    static bool mayOverlap(const TensorType& a, const TensorType& b);

  private:
    std::string unlessLastReader(const Node& write, const Node& target, const Node* back) const;
    const Node* readerBehind(const Node& result, const Node& copy) const;

    const Graph& m_graph;
    bool m_parity;
};

}  // namespace cutaway
