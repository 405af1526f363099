#pragma once
#include <string_view>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Whether calls may write to their operands, in the graph as it is when asked (PST-19). Nothing may read the old value
/// later, from the operand or a view that overlaps it, except for its shape or to overwrite it. A graph input may be
/// written to only before a copy_ into it; reads after that copy_ do not count.
class InplaceWrites {
  public:
    explicit InplaceWrites(const Graph& graph, bool parity = false) : m_graph(graph), m_parity(parity) {}

    /// The operand itself, looking through calls that wrote to it in place and returned it.
    static Node& written(Node& node);
    /// The first copy_ into this input; null if there is none.
    Node* copyInto(const Node& input) const;
    /// A sentence that says why `write` may not write to `target` and names the node in the way, or "". `result`: the
    /// node of the new value, if any; `others`: what else the call reads while it writes.
    std::string unlessWritable(const Node& write, Node& target, const Node* result,
                               const std::vector<const Node*>& others) const;
    /// Whether two views of one memory may have elements in common. Symbolic offsets may be any number.
    static bool mayOverlap(const TensorType& a, const TensorType& b);

  private:
    std::string unlessLastReader(const Node& write, const Node& target, const Node* back) const;
    const Node* readerBehind(const Node& result, const Node& copy) const;

    const Graph& m_graph;
    bool m_parity;
};

}  // namespace cutaway
