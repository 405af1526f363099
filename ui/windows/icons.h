#pragma once
// Icons of the program's own (resources/icons): lines that take their colours from the palette when they are painted,
// so that one drawing serves light, dark and disabled.
#include <QIcon>

namespace cutaway::ui {

/// By file name without its ending. A name without a file is a bug.
QIcon iconNamed(const QString& name);
/// Of the program, in its own colours.
QIcon programIcon();

}  // namespace cutaway::ui
