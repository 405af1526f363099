#pragma once
// All windows, a row each: whatever lists windows, names them or puts them somewhere reads this table.
#include "ui/windows/window.h"

namespace cutaway::ui {

std::span<const WindowRow> windowRows();
QStringList windowNames();

}  // namespace cutaway::ui
