#pragma once
// A forward and its backward as one graph again, so that what they compute together can be compared with anything else
// that takes the same inputs.
#include "engine/ir/module.h"

namespace cutaway {

/// Inputs: the forward's, then the tangents. Outputs: the forward's but for what is saved, then the gradients. Copies
/// into inputs stay last. Nodes keep their ids, but for nodes of the backward whose ids the forward has, too (what is
/// computed again): those get `firstId` and their id, so that with one `firstId`, at least each half's limit, the same
/// nodes have the same ids at every step. Errors: the backward takes a saved value that the forward does not return.
Result<std::shared_ptr<Module>> joinGraphs(const Module& forward, const Module& backward, uint32_t firstId = 0);

/// The id there of a node of the backward; `firstId` at least each half's limit.
NodeId joinedId(const Module& forward, NodeId ofBackward, uint32_t firstId);

/// For each saved input of the backward, in order, which output of the forward it is. Errors: as joinGraphs.
Result<std::vector<size_t>> savedOutputs(const Module& forward, const Module& backward);

}  // namespace cutaway
