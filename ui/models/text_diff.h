#pragma once
// Compares the FX text of two places line by line. Lines are matched by the node they define, never by its name, and by
// their words where they define none; matched lines that differ carry word-level marks. Pure functions.
#include <QString>
#include <QStringList>
#include <QVector>

#include "cutaway/snapshot.h"

namespace cutaway::ui {

struct MarkedRange {
    int start = 0, length = 0;
    bool operator==(const MarkedRange&) const = default;
};

struct DiffLine {
    enum class Kind { Same, Added, Removed, Edited };
    Kind kind = Kind::Same;
    int beforeNumber = 0, afterNumber = 0;  // from 1; 0 where the side has no such line
    QString before, after;                  // empty where the side has no such line
    QVector<MarkedRange> beforeMarks, afterMarks;
    NodeKey node = NodeKey::None;
};

QVector<DiffLine> diffTexts(const GraphText& before, const GraphText& after);
/// A text alone, each line the same on both sides.
QVector<DiffLine> linesOf(const GraphText& text);

/// Words (names, numbers, single signs) of `before` that are not in `after` and the other way round, by their longest
/// common subsequence.
void markWords(const QString& before, const QString& after, QVector<MarkedRange>& beforeMarks,
               QVector<MarkedRange>& afterMarks);

}  // namespace cutaway::ui
