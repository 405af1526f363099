#pragma once
// How a cell with a number looks, in every table: on the right, in digits of one width, so that places stand below each
// other.
#include <QFont>
#include <QVariant>

namespace cutaway::ui {

/// Families only: size and weight stay those of the view.
QFont numberFont();
/// Alignment and font of a cell; nothing for other roles. Also for the cell's header, which keeps its font.
QVariant numberCell(int role);
QVariant numberHeader(int role);

}  // namespace cutaway::ui
