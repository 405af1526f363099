#pragma once
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/graph.h"
#include "engine/ops/build.h"

namespace cutaway {

/// Puts every node after its operands, moving as little as possible: nodes wait for their last unready operand and
/// follow it (spec: pattern-matcher §10). An ordered graph stays as it is. True if anything moved. It is a bug to pass
/// a graph with a cycle.
bool sortTopologically(Graph& graph);

/// Work that spreads from values to their readers: hands out nodes in the order of the graph, each once.
class ReaderQueue {
  public:
    explicit ReaderQueue(const Graph& graph) : m_graph(&graph) {}
    /// Adds the readers of a node: the one handed out last, or one that stands before everything in the queue.
    void addReadersOf(const Node& node);
    /// The next node, or null.
    Node* next();

  private:
    const Graph* m_graph;
    std::vector<Node*> m_heap;
    const Node* m_last = nullptr;
};

/// Infers the types of all nodes after `changed` that depend on it, because its strides, dtype or device are new. A
/// view that the new strides no longer allow becomes a reshape. Errors name the call that no longer types. With
/// `keepRead` a value whose storage is read by position (as_strided) is copied back into its old layout, for all its
/// readers.
Result<void> retypeReaders(Graph& graph, Node& changed, bool keepRead = false);

/// `value` copied into the layout of `like`, before the builder's position.
Node& laidOutLike(GraphBuilder builder, Node& value, const TensorType& like);

}  // namespace cutaway
