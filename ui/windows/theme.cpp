#include "ui/windows/theme.h"

#include <QApplication>
#include <QPalette>
#include <QStyleFactory>
#include <QToolTip>

namespace cutaway::ui {
namespace {

struct Shade {
    const char *window, *text, *base, *alternate, *button, *placeholder, *highlight, *highlighted, *link, *mid, *dark, *light, *disabled;
};
constexpr Shade kLight = {"#f3f4f6", "#1f2328", "#ffffff", "#f6f8fa", "#eceef1", "#636c76", "#0b6bcb", "#ffffff", "#0b5cad", "#c4cad1", "#9aa1a9", "#ffffff", "#8c959f"};
constexpr Shade kDark = {"#26282c", "#e3e6ea", "#1d1f22", "#23262a", "#33363b", "#98a1ab", "#2f6fb5", "#ffffff", "#6cb6ff", "#4a4f56", "#131416", "#3d4147", "#767d85"};

QPalette paletteOf(const Shade& shade) {
    QPalette palette;
    palette.setColor(QPalette::Window, shade.window);
    palette.setColor(QPalette::WindowText, shade.text);
    palette.setColor(QPalette::Base, shade.base);
    palette.setColor(QPalette::AlternateBase, shade.alternate);
    palette.setColor(QPalette::Text, shade.text);
    palette.setColor(QPalette::Button, shade.button);
    palette.setColor(QPalette::ButtonText, shade.text);
    palette.setColor(QPalette::BrightText, "#ff5c64");
    palette.setColor(QPalette::PlaceholderText, shade.placeholder);
    palette.setColor(QPalette::Highlight, shade.highlight);
    palette.setColor(QPalette::HighlightedText, shade.highlighted);
    palette.setColor(QPalette::Link, shade.link);
    palette.setColor(QPalette::ToolTipBase, shade.alternate);
    palette.setColor(QPalette::ToolTipText, shade.text);
    palette.setColor(QPalette::Mid, shade.mid);
    palette.setColor(QPalette::Midlight, shade.light);
    palette.setColor(QPalette::Dark, shade.dark);
    palette.setColor(QPalette::Light, shade.light);
    palette.setColor(QPalette::Shadow, "#000000");
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) palette.setColor(QPalette::Disabled, role, shade.disabled);
    return palette;
}

bool systemIsDark() {
    static const bool dark = QApplication::palette().color(QPalette::Window).lightness() < 128;
    return dark;
}

}  // namespace

void applyTheme(Theme theme) {
    const bool dark = theme == Theme::Dark || (theme == Theme::System && systemIsDark());
    (void)systemIsDark();  // reads the platform's palette before ours replaces it
    if (!QApplication::style() || QApplication::style()->name() != QLatin1String("fusion")) QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    const QPalette palette = paletteOf(dark ? kDark : kLight);
    QApplication::setPalette(palette);
    QToolTip::setPalette(palette);
}

Theme themeNamed(const QString& name) {
    return name == QLatin1String("light") ? Theme::Light : name == QLatin1String("dark") ? Theme::Dark : Theme::System;
}

QString nameOf(Theme theme) {
    return theme == Theme::Light ? QStringLiteral("light") : theme == Theme::Dark ? QStringLiteral("dark") : QStringLiteral("system");
}

}  // namespace cutaway::ui
