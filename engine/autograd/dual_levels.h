#pragma once
// Where a graph opens and closes levels of dual tensors, and which level each call on duals belongs to (spec: autograd
// C.1).
#include <map>
#include <utility>

#include "engine/ir/graph.h"

namespace cutaway {

bool isMakeDual(const Node& node);
bool isUnpackDual(const Node& node);
/// Opens or closes a level, or a nesting of torch.func.jvp.
bool isDualLevel(const Node& node);
inline bool isDualCall(const Node& node) { return isMakeDual(node) || isUnpackDual(node) || isDualLevel(node); }

constexpr int64_t kSameRegion = -1;

class DualLevels {
  public:
    /// Errors: a level opened inside another, a wrong or missing one closed, a dual made outside of any.
    static Result<DualLevels> of(const Graph& graph);
    bool empty() const { return m_depths.empty() && m_regions.empty(); }
    int deepest() const { return m_deepest; }
    /// How many nested levels are open at this call on duals; 0: none.
    int depthOf(const Node& call) const;
    /// The region that begins at this node for duals of that depth, 0 where one ends, kSameRegion for other nodes.
    int64_t regionOf(const Node& node, int depth) const;

  private:
    std::map<NodeId, int> m_depths;
    std::map<std::pair<NodeId, int>, int64_t> m_regions;
    int m_deepest = 0;
};

/// Readers of an unpacked dual read its primal and its tangent, None where it has none; the call is erased. Errors: a
/// call that needs the missing tangent.
Result<void> replaceUnpacked(Graph& graph, Node& unpacked, Node& primal, Node* tangent);

}  // namespace cutaway
