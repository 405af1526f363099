#include "ui/graph/side_marks.h"

#include <QObject>

namespace cutaway::ui {

SideMarks::SideMarks(const std::vector<NodeSide>& sides) {
    m_marks.reserve(static_cast<qsizetype>(sides.size()));
    for (const NodeSide& one : sides) m_marks.insert(packed(one.node), {one.side, one.saved});
}

SideMarks::SideMarks(const std::vector<NodeSide>& sides, const PartitionChoice& choice) : SideMarks(sides) {
    for (SideMark& mark : m_marks) {
        if (mark.side == Side::Both) mark.side = Side::Forward;
        mark.saved = false;
    }
    for (const SavedTensor& value : choice.saved) m_marks[packed(value.node)] = {Side::Forward, true};
    for (const NodeKey node : choice.recomputed) m_marks[packed(node)] = {Side::Both, false};
}

const SideMark* SideMarks::find(NodeKey node) const {
    const auto found = m_marks.constFind(packed(node));
    return found == m_marks.cend() ? nullptr : &*found;
}

QString signOf(Side side) {
    switch (side) {
        case Side::Forward: return QStringLiteral("→");
        case Side::Backward: return QStringLiteral("←");
        case Side::Both: return QStringLiteral("↻");
    }
    return {};
}

QString wordsOf(const SideMark& mark) {
    const QString side = mark.side == Side::Forward    ? QObject::tr("forward")
                         : mark.side == Side::Backward ? QObject::tr("backward")
                                                       : QObject::tr("computed again in the backward");
    return mark.saved ? QObject::tr("%1, saved for the backward").arg(side) : side;
}

}  // namespace cutaway::ui
