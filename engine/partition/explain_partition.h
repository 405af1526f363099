#pragma once
// Sentences about a partition: why a value is saved, computed again, or on one side only.
#include "engine/partition/partition.h"

namespace cutaway {

/// Where each node is computed, indexed by its number in JointFacts. A saved node may be set on both sides; its readers
/// in the backward read the saved value all the same.
struct Sides {
    std::vector<bool> forward, backward, saved;
};
Sides sidesOf(const JointFacts& facts, const SplitGraph& split);

/// Why the node is where it is, as a sentence without its full stop: what the backward needs of it, which ban or whose
/// mark holds it, what saving it costs, and where the cut runs.
std::string explainSide(const JointFacts& facts, const SavedValues& choice, const Sides& sides, int node);

}  // namespace cutaway
