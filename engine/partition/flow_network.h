#pragma once
// The flow network whose minimum cut says what is saved (spec: autograd B.7). Each node of the joint graph has an edge
// from its `in` to its `out`, whose capacity is the cost of saving the node: cutting there saves it. Edges that cannot
// be cut: from the source to what may not be recomputed, to the sink from what the backward computes, and to readers.
#include <string>
#include <vector>

#include "engine/partition/joint_facts.h"

namespace cutaway {

/// Why an edge cannot be cut, or a node has an edge from the source or to the sink.
enum class EdgeReason : uint8_t {
    None,
    Input,                 // cannot be computed again: an input of the forward
    UserSaves,             // marked to be saved
    NotRecomputable,       // not among the operators that are cheap to compute again
    DrawsAnew,             // would draw other random numbers
    ComputeIntensive,      // a product, a convolution, attention
    Custom,                // an operator of a library of the user's own
    MaterializedBackward,  // the backward needs it in memory
    FarFromBackward,       // its reader in the backward is too far away
    Reduces,               // far smaller than what it is computed from
    UsedFarApart,          // would have to be kept between readers that are far apart
    LongChain,             // the end of a long chain of cheap operators
    NotATensor,            // cannot be saved
    ViewsAreComputed,      // cannot be saved: views are always computed again (recompute_views)
    NeedsTangent,          // computed in the backward, because it depends on a tangent
    ReturnedGradient,      // a gradient that depends on no tangent
    UserRecomputes,        // marked to be computed again
};
/// A clause for the user: "it would draw other random numbers".
std::string_view sentence(EdgeReason reason);

class FlowNetwork {
  public:
    static constexpr int64_t kInfinite = int64_t{1} << 60;

    struct NodeEdges {
        EdgeReason source = EdgeReason::None;   // source -> in, without limit
        EdgeReason sinkIn = EdgeReason::None;   // in -> sink, without limit
        EdgeReason sinkOut = EdgeReason::None;  // out -> sink, without limit
        int64_t weight = 0;                     // in -> out
        EdgeReason unsaved = EdgeReason::None;  // why the weight is infinite
        bool ends = false;                      // no edges from in to out and to readers
    };

    explicit FlowNetwork(const JointFacts& facts) : m_facts(&facts), m_edges(facts.nodes.size()) {}
    NodeEdges& operator[](int node) { return m_edges[static_cast<size_t>(node)]; }
    const NodeEdges& operator[](int node) const { return m_edges[static_cast<size_t>(node)]; }
    const JointFacts& facts() const { return *m_facts; }

    /// The nodes on the minimum cut that lies closest to the sink, in the order of the graph: the values to save.
    /// Errors: a path from source to sink that nothing can cut: a value that the backward needs and that can be neither
    /// saved nor computed again. The error lists the path with the reason of each edge.
    Result<std::vector<int>> minimumCut() const;

  private:
    const JointFacts* m_facts;
    std::vector<NodeEdges> m_edges;
};

}  // namespace cutaway
