#include "ui/windows/theme.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QEvent>
#include <QPalette>
#include <QPointer>
#include <QTimer>
#include <QToolTip>
#include <optional>

#include "ui/windows/check_box_style.h"

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
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, dark ? kDisabledDark : kDisabledLight);
    return palette;
}

Theme g_theme = Theme::System;

/// The palette that the program has before any of ours.
bool platformIsDark() {
    QApplication::setPalette(QPalette());
    return QApplication::palette().color(QPalette::Window).lightness() < 128;
}

void applyShades(bool dark) {
    if (!dynamic_cast<CheckBoxStyle*>(QApplication::style())) QApplication::setStyle(new CheckBoxStyle);
    const QPalette palette = paletteOf(dark);
    QApplication::setPalette(palette);
    QToolTip::setPalette(palette);
}

/// Is notified of the system's choice by the platform and by the desktop's settings.
class SystemTheme : public QObject {
    Q_OBJECT

  public:
    SystemTheme() : QObject(qApp) {
        qApp->installEventFilter(this);
        connect(&m_later, &QTimer::timeout, this, [] { applyTheme(g_theme); });
        m_later.setSingleShot(true);
        // Asking for a bus where none is would start one.
        if (qEnvironmentVariableIsEmpty("DBUS_SESSION_BUS_ADDRESS")) return;
        QDBusConnection bus = QDBusConnection::sessionBus();
        bus.connect({}, kPath, kInterface, QStringLiteral("SettingChanged"), this,
                    SLOT(settingChanged(QString, QString, QDBusVariant)));
        QDBusMessage question = QDBusMessage::createMethodCall(QStringLiteral("org.freedesktop.portal.Desktop"), kPath,
                                                               kInterface, QStringLiteral("Read"));
        question << kAppearance << kColorScheme;
        auto* answer = new QDBusPendingCallWatcher(bus.asyncCall(question), this);
        connect(answer, &QDBusPendingCallWatcher::finished, this, [this, answer] {
            const QDBusPendingReply<QDBusVariant> reply = *answer;
            if (reply.isValid()) settingChanged(kAppearance, kColorScheme, reply.value());
            answer->deleteLater();
        });
    }
    bool isDark() const { return m_desktop ? *m_desktop : platformIsDark(); }

  public slots:
    void settingChanged(const QString& group, const QString& key, const QDBusVariant& value) {
        if (group != kAppearance || key != kColorScheme) return;
        QVariant plain = value.variant();  // portals pack the value twice
        while (plain.canConvert<QDBusVariant>()) plain = plain.value<QDBusVariant>().variant();
        constexpr uint kDark = 1, kLight = 2;
        const uint scheme = plain.toUInt();
        m_desktop = scheme == kDark || scheme == kLight ? std::optional(scheme == kDark) : std::nullopt;
        m_later.start(0);
    }

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        // The event comes once for each window, and the palette must not change while it is delivered.
        if (event->type() == QEvent::ThemeChange) m_later.start(0);
        return QObject::eventFilter(watched, event);
    }

  private:
    const QString kPath = QStringLiteral("/org/freedesktop/portal/desktop"),
                  kInterface = QStringLiteral("org.freedesktop.portal.Settings");
    const QString kAppearance = QStringLiteral("org.freedesktop.appearance"),
                  kColorScheme = QStringLiteral("color-scheme");
    std::optional<bool> m_desktop;
    QTimer m_later;
};

}  // namespace

void applyTheme(Theme theme) {
    g_theme = theme;
    if (theme != Theme::System) return applyShades(theme == Theme::Dark);
    static QPointer<SystemTheme> system;
    if (!system) system = new SystemTheme;
    applyShades(system->isDark());
}

Theme themeNamed(const QString& name) {
    return name == QLatin1String("light") ? Theme::Light : name == QLatin1String("dark") ? Theme::Dark : Theme::System;
}

QString nameOf(Theme theme) {
    return theme == Theme::Light  ? QStringLiteral("light")
           : theme == Theme::Dark ? QStringLiteral("dark")
                                  : QStringLiteral("system");
}

}  // namespace cutaway::ui

#include "theme.moc"
