#pragma once
// Writes the graph that is on show to a file: SVG, PNG or Graphviz DOT, by the file's ending. Errors name the file and
// what to do.
#include <QPalette>
#include <QStringList>

#include "cutaway/result.h"
#include "ui/graph/graph_painter.h"

namespace cutaway::ui {

/// What lies over the graph that is on show: null for what does not.
struct PictureMarks {
    const SideMarks* sides = nullptr;
    const HeatMarks* heat = nullptr;
};

/// Pictures carry the title, and a legend of the marks, or else of what changed.
Result<void> exportGraph(const GraphScene& scene, GraphMode mode, const PictureMarks& marks, const QPalette& palette,
                         const QString& title, const QString& path);

/// The file to write to, with the ending of the chosen filter where somebody gave none; empty if nobody wants to write.
QString askForFile(QWidget* parent, const QString& title, const QString& name, const QStringList& filters);

/// The picture as DOT: states as colours and signs, folds as dotted boxes, saved values with a second outline.
QString dotText(const GraphScene& scene, GraphMode mode, const PictureMarks& marks = {});

}  // namespace cutaway::ui
