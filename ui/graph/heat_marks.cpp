#include "ui/graph/heat_marks.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

namespace cutaway::ui {
namespace {

constexpr double kSlight = 4, kSome = 1000;  // steps between neighbours of the dtype

QString heatNumber(double value) { return QString::number(value, 'g', 2); }

HeatMark markOf(const NodeNumbers& row) {
    HeatMark mark{heatOf(row), {}, QObject::tr(wordOf(row.verdict))};
    switch (row.verdict) {
        case NodeVerdict::Equal: mark.sign = QStringLiteral("="); break;
        case NodeVerdict::Close: mark.sign = heatNumber(row.maxAbsolute); break;
        case NodeVerdict::Wrong: mark.sign = QStringLiteral("✗ ") + heatNumber(row.maxAbsolute); break;
        case NodeVerdict::NonFinite: mark.sign = row.nans > 0 ? QStringLiteral("NaN") : QStringLiteral("∞"); break;
        case NodeVerdict::WrongType: mark.sign = QObject::tr("✗ type"); break;
        case NodeVerdict::Failed: mark.sign = QObject::tr("✗ fails"); break;
        case NodeVerdict::Unmatched: break;
    }
    if (row.maxAbsolute > 0) mark.words += QObject::tr(", largest error %1").arg(heatNumber(row.maxAbsolute));
    if (!row.why.empty()) mark.words += QStringLiteral(": ") + QString::fromStdString(row.why);
    return mark;
}

Heat shareHeat(double share) {
    if (share == 0) return Heat::Equal;
    if (share > 0.5) return Heat::Wrong;
    if (share > 0.1) return Heat::Much;
    return share > 0.01 ? Heat::Some : Heat::Slight;
}

}  // namespace

HeatMarks::HeatMarks(const std::vector<NodeNumbers>& nodes) {
    for (const NodeNumbers& row : nodes)
        if (row.node != NodeKey::None && row.verdict != NodeVerdict::Unmatched)
            m_marks.insert(packed(row.node), markOf(row));
}

HeatMarks::HeatMarks(const std::vector<std::pair<NodeKey, NodeColor>>& nodes, const QString& unit) {
    double largest = 0;
    for (const auto& [key, color] : nodes)
        if (color.kind.empty()) largest = std::max(largest, std::abs(color.number));
    QStringList kinds;
    for (const auto& [key, color] : nodes) {
        HeatMark mark;
        if (color.kind.empty()) {
            mark.heat = shareHeat(largest > 0 ? std::abs(color.number) / largest : 0);
            mark.sign = QString::number(color.number, 'g', 4);
            if (!unit.isEmpty()) mark.sign += QChar(' ') + unit;
        } else {
            mark.sign = QString::fromStdString(color.kind);
            if (!kinds.contains(mark.sign)) kinds << mark.sign;
            mark.heat = static_cast<Heat>(kinds.indexOf(mark.sign) % kHeats);
        }
        mark.words =
            color.why.empty() ? mark.sign : mark.sign + QStringLiteral(": ") + QString::fromStdString(color.why);
        m_marks.insert(packed(key), mark);
    }
}

const HeatMark* HeatMarks::find(NodeKey node) const {
    const auto found = m_marks.constFind(packed(node));
    return found == m_marks.cend() ? nullptr : &*found;
}

Heat heatOf(const NodeNumbers& row) {
    if (diverges(row.verdict)) return Heat::Wrong;
    if (row.verdict != NodeVerdict::Close || row.different == 0) return Heat::Equal;
    return row.maxUlp > kSome ? Heat::Much : row.maxUlp > kSlight ? Heat::Some : Heat::Slight;
}

QString legendWord(Heat heat) {
    switch (heat) {
        case Heat::Equal: return QObject::tr("= equal");
        case Heat::Slight: return QObject::tr("≤ 4 ULP");
        case Heat::Some: return QObject::tr("≤ 1000 ULP");
        case Heat::Much: return QObject::tr("> 1000 ULP");
        case Heat::Wrong: return QObject::tr("✗ diverges");
    }
    return {};
}

QString wordsOf(Heat heat) {
    switch (heat) {
        case Heat::Equal: return QObject::tr("Equal to the reference, to the bit");
        case Heat::Slight: return QObject::tr("Off by at most 4 ULP");
        case Heat::Some: return QObject::tr("Off by at most 1000 ULP");
        case Heat::Much: return QObject::tr("Differs more, but is as close to the f64 result as the reference");
        case Heat::Wrong: return QObject::tr("Wrong, not finite, of another type, or it does not run");
    }
    return {};
}

}  // namespace cutaway::ui
