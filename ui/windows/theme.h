#pragma once
// Light and dark: Fusion style with our own palettes. Qt 6.4 does not tell the system's choice, so "system" reads it from
// the palette that the platform gave the program at start.
#include <QString>

namespace cutaway::ui {

enum class Theme { System, Light, Dark };

/// Applies at once to every window. The first call must come before any other palette is set.
void applyTheme(Theme theme);
Theme themeNamed(const QString& name);
QString nameOf(Theme theme);

}  // namespace cutaway::ui
