#pragma once
// Which node of a graph computes the value that a node of an earlier form of it computes.
#include <unordered_map>

#include "engine/ir/module.h"

namespace cutaway {

/// From a node of the later graph to one of the earlier. In this order: the same node, computing the same from the
/// same; the node in whose place readers that both graphs have now read it; the node itself where its arguments have
/// changed and some reader still reads it; the only node that it was made from, where it is the only one made from
/// that. Values of other sizes are never the same.
std::unordered_map<NodeId, NodeId> counterparts(const Module& earlier, const Module& later);

/// Composes two maps of counterparts(): from nodes of the last of three graphs to those of the first.
std::unordered_map<NodeId, NodeId> chained(const std::unordered_map<NodeId, NodeId>& first,
                                           const std::unordered_map<NodeId, NodeId>& then);

}  // namespace cutaway
