#pragma once
// The forward and the backward of a training run as one graph, linked by what both have: the values that are handed
// over, and what the backward computes again.
#include <QHash>

#include "cutaway/partition.h"
#include "cutaway/snapshot.h"

namespace cutaway::ui {

struct SideBySide {
    UnionGraph graph;  // Removed: only in the forward; Added: only in the backward; Kept and Edited: in both
    /// Passes give new nodes of either graph the next free id, so two that have nothing to do with each other may share
    /// one. Nodes of the backward that are named by another key here, by the key that they have there.
    QHash<quint64, NodeKey> shown;

    NodeKey shownKey(NodeKey inBackward) const { return shown.value(packed(inBackward), inBackward); }
    NodeKey backwardKey(NodeKey shownHere) const;
};
SideBySide besideEachOther(const UnionGraph& forward, const UnionGraph& backward);

/// The sides of its nodes, those that came after the partition included; `joint`: the sides of the joint graph's.
std::vector<NodeSide> sidesOf(const UnionGraph& graph, const std::vector<NodeSide>& joint);
/// The modules of a graph's nodes, each with those it is in: "encoder", "encoder.0"; sorted.
std::vector<std::string> modulesOf(const UnionGraph& graph);
/// The nodes of one module, and what they read and hand on directly.
UnionGraph onlyModule(const UnionGraph& graph, const std::string& module);

}  // namespace cutaway::ui
