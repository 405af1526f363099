#pragma once
// The joint graph cut in two (spec: autograd A.8, B.11).
#include "engine/partition/joint_facts.h"

namespace cutaway {

/// What goes from the forward to the backward, by number, in the order in which it is handed over (A8.1, A8.2).
struct SavedForBackward {
    std::vector<int> numbers;  // symbolic sizes: the last outputs of the forward, the first inputs of the backward
    std::vector<int> values;   // tensors
};

struct SplitGraph {
    std::shared_ptr<Module> forward, backward;
    SavedForBackward saved;  // of the values asked for those that the backward reads
};

/// Forward: the primals as inputs; the forward's values, then what is saved, as outputs. Backward: what is saved, then
/// the tangents, as inputs; a gradient or None for each primal as outputs. Nodes keep ids and names; what is computed
/// on both sides stands in both graphs. Errors: a gradient that cannot be computed from what is saved.
Result<SplitGraph> splitGraph(const Module& joint, const JointFacts& facts, const std::vector<int>& saved);

/// Puts what the backward computes again right before its first reader (B11.3).
void computeAgainLate(Module& backward);
/// Puts each getitem right behind the call whose result it takes.
void raiseGetitems(Graph& graph);

}  // namespace cutaway
