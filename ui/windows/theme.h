#pragma once
// Light and dark: Fusion style with our own palettes. Qt 6.4 does not tell the system's choice, so "system" asks the
// desktop (the setting that portals and desktops share), and where no desktop answers the palette that the platform
// gives the program.
#include <QString>

namespace cutaway::ui {

enum class Theme { System, Light, Dark };

/// Applies at once to every window; the system's choice is followed while the program runs.
void applyTheme(Theme theme);
Theme themeNamed(const QString& name);
QString nameOf(Theme theme);

}  // namespace cutaway::ui
