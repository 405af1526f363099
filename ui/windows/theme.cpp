#include "ui/windows/theme.h"

#include <QApplication>
#include <QPalette>
#include <QStyleFactory>
#include <QToolTip>

namespace cutaway::ui {
namespace {

struct Shades {
    QPalette::ColorRole role;
    const char *light, *dark;
};
constexpr Shades kShades[] = {
    {QPalette::Window, "#f3f4f6", "#26282c"},
    {QPalette::WindowText, "#1f2328", "#e3e6ea"},
    {QPalette::Base, "#ffffff", "#1d1f22"},
    {QPalette::AlternateBase, "#f6f8fa", "#23262a"},
    {QPalette::Text, "#1f2328", "#e3e6ea"},
    {QPalette::Button, "#eceef1", "#33363b"},
    {QPalette::ButtonText, "#1f2328", "#e3e6ea"},
    {QPalette::BrightText, "#ff5c64", "#ff5c64"},
    {QPalette::PlaceholderText, "#636c76", "#98a1ab"},
    {QPalette::Highlight, "#0b6bcb", "#2f6fb5"},
    {QPalette::HighlightedText, "#ffffff", "#ffffff"},
    {QPalette::Link, "#0b5cad", "#6cb6ff"},
    {QPalette::ToolTipBase, "#f6f8fa", "#23262a"},
    {QPalette::ToolTipText, "#1f2328", "#e3e6ea"},
    {QPalette::Light, "#ffffff", "#3d4147"},
    {QPalette::Midlight, "#ffffff", "#3d4147"},
    {QPalette::Mid, "#c4cad1", "#4a4f56"},
    {QPalette::Dark, "#9aa1a9", "#131416"},
    {QPalette::Shadow, "#000000", "#000000"},
};
constexpr const char *kDisabledLight = "#8c959f", *kDisabledDark = "#767d85";

QPalette paletteOf(bool dark) {
    QPalette palette;
    for (const Shades& shades : kShades) palette.setColor(shades.role, dark ? shades.dark : shades.light);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) palette.setColor(QPalette::Disabled, role, dark ? kDisabledDark : kDisabledLight);
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
    const QPalette palette = paletteOf(dark);
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
