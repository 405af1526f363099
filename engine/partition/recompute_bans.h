#pragma once
// What may be computed again in the backward: the edges of the flow network, from PyTorch's heuristics (spec: autograd
// B.7, B.8).
#include "engine/partition/flow_network.h"
#include "engine/partition/options.h"

namespace cutaway {

struct BannedNetwork {
    FlowNetwork network;
    std::vector<int> banned;  // nodes that may not be computed again, in the order in which that was found
};

/// The network under these bans. `allowed`: nodes that may be computed again all the same, as a memory budget asks for
/// it; by number, empty for none. What draws random numbers is never allowed to, unless `parity`: PyTorch draws other
/// ones in the backward if the list of cheap operators is not held to.
BannedNetwork banRecomputation(const JointFacts& facts, const PartitionOptions& options, const BanOptions& bans,
                               bool parity, const std::vector<bool>& allowed = {});

}  // namespace cutaway
