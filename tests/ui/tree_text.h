#pragma once
// Models under the model tester, and as text, so that a test can be read: two blanks a level, columns joined by " | ",
// empty columns at the end cut.
#include <QAbstractItemModel>
#include <QAbstractItemModelTester>
#include <QStringList>

namespace cutaway::testing {

constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;

inline QString treeText(const QAbstractItemModel& model, const QModelIndex& parent = {}, int depth = 0) {
    QString text;
    for (int row = 0; row < model.rowCount(parent); ++row) {
        QStringList cells;
        for (int column = 0; column < model.columnCount(parent); ++column)
            cells << model.index(row, column, parent).data().toString();
        while (!cells.isEmpty() && cells.last().isEmpty()) cells.removeLast();
        text += QString(2 * depth, ' ') + cells.join(QStringLiteral(" | ")) + '\n';
        text += treeText(model, model.index(row, 0, parent), depth + 1);
    }
    return text;
}

}  // namespace cutaway::testing
