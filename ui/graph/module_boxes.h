#pragma once
// What is written on boxes that stand for several nodes; for graph_picture.cpp. And which of them are alike.
#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

/// Of a closed module: name, number of nodes, bytes of its results, what changed in it, its time. A module of numbered
/// ones is told with their number: "layer × 12".
void describeModule(Picture::Node& node, const UnionGraph& graph, const std::vector<int>& members,
                    const QHash<quint64, double>* microseconds);
/// The same for every other box of several nodes.
void describeFold(Picture::Node& node, const UnionGraph& graph, const std::vector<int>& members);
/// Equal for modules whose calls, their types, wiring and changes are the same.
size_t structureOf(const UnionGraph& graph, const std::vector<int>& members,
                   const std::vector<std::vector<int>>& inputs, const QString& key);

}  // namespace cutaway::ui
