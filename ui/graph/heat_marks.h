#pragma once
// How far the values of nodes are off, as marks on the picture of their graph: a colour, and a sign that tells it
// without the colour.
#include <QHash>
#include <QString>
#include <vector>

#include "cutaway/node_numbers.h"
#include "cutaway/plugins.h"

namespace cutaway::ui {

/// How far off a value is, in classes that have one colour each.
enum class Heat : uint8_t { Equal, Slight, Some, Much, Wrong };
constexpr int kHeats = 5;

struct HeatMark {
    Heat heat = Heat::Equal;
    QString sign;   // "=", "2.4e-07", "✗ 0.31", "NaN"
    QString words;  // "close, largest error 2.4e-07, 3 steps of its dtype"
    bool operator==(const HeatMark&) const = default;
};

class HeatMarks {
  public:
    HeatMarks() = default;
    explicit HeatMarks(const std::vector<NodeNumbers>& nodes);
    /// Of a plugin's colouring: numbers by their share of the largest, classes in the order in which they come.
    HeatMarks(const std::vector<std::pair<NodeKey, NodeColor>>& nodes, const QString& unit);

    /// None for nodes that were not compared.
    const HeatMark* find(NodeKey node) const;
    bool operator==(const HeatMarks&) const = default;

  private:
    QHash<quint64, HeatMark> m_marks;
};

Heat heatOf(const NodeNumbers& row);
/// "= equal", "≤ 4 ULP", "≤ 1000 ULP", "> 1000 ULP", "✗ diverges": for legends.
QString legendWord(Heat heat);
/// What the colour means, in a sentence.
QString wordsOf(Heat heat);

}  // namespace cutaway::ui
