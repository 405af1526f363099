#pragma once
// Colours of the four states and the canvas, for a light or dark palette.
#include <QColor>
#include <QPalette>

#include "cutaway/snapshot.h"

namespace cutaway::ui {

struct ChangeColors {
    QColor fill, line, text;
};
struct GraphColors {
    ChangeColors states[4];
    QColor canvas, edge, cluster, clusterText, detail, chip, chipText, current, hover, input;
    /// Told by the palette's base colour.
    static GraphColors of(const QPalette& palette);
    const ChangeColors& operator[](Change change) const { return states[static_cast<int>(change)]; }
};

}  // namespace cutaway::ui
