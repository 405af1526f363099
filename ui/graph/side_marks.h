#pragma once
// On which side of a training run's partition the nodes of the joint graph are computed, as marks on its picture.
#include <QHash>
#include <QString>
#include <vector>

#include "cutaway/partition.h"

namespace cutaway::ui {

struct SideMark {
    Side side = Side::Forward;
    bool saved = false;
    bool operator==(const SideMark&) const = default;
};

class SideMarks {
  public:
    SideMarks() = default;
    explicit SideMarks(const std::vector<NodeSide>& sides);
    /// The sides with another choice of saved values; nodes that `choice` does not name stay on their side.
    SideMarks(const std::vector<NodeSide>& sides, const PartitionChoice& choice);

    /// None for nodes that neither side computes, and for those of other graphs.
    const SideMark* find(NodeKey node) const;
    bool operator==(const SideMarks&) const = default;

  private:
    QHash<quint64, SideMark> m_marks;
};

/// "→", "←", "↻": told from the colour.
QString signOf(Side side);
/// "forward", "backward", "computed again in the backward"; and ", saved".
QString wordsOf(const SideMark& mark);

}  // namespace cutaway::ui
