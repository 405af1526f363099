#pragma once
// Colours of the four states and the canvas, for a light or dark palette.
#include <QColor>
#include <QPalette>

#include "cutaway/partition.h"
#include "cutaway/snapshot.h"
#include "ui/graph/heat_marks.h"

namespace cutaway::ui {

struct ChangeColors {
    QColor fill, line, text;
};
struct GraphColors {
    ChangeColors states[4];
    ChangeColors sides[3];  // of a partition
    ChangeColors heats[kHeats];
    QColor classes[5];  // of unchanged calls
    QColor canvas, edge, cluster, clusterText, detail, chip, chipText, current, hover, input, saved;
    /// Told by the palette's base colour.
    static GraphColors of(const QPalette& palette);
    const ChangeColors& operator[](Change change) const { return states[static_cast<int>(change)]; }
    const ChangeColors& operator[](Side side) const { return sides[static_cast<int>(side)]; }
    const QColor& operator[](OpClass opClass) const { return classes[static_cast<int>(opClass)]; }
    const ChangeColors& operator[](Heat heat) const { return heats[static_cast<int>(heat)]; }
};

}  // namespace cutaway::ui
