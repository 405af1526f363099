#pragma once
// The main window on a real session, for tests of windows that need an engine behind them.
#include <QPushButton>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "ui/session/source.h"
#include "ui/windows/main_window.h"
#include "ui/windows/theme.h"

namespace cutaway::testing {

/// One window per test, with settings of its own. CUTAWAY_THEME=dark shows it dark.
struct SessionWindowFixture {
    QTemporaryDir m_folder;
    std::unique_ptr<ui::MainWindow> m_main;

    ui::SessionController& controller() { return m_main->controller(); }
    void prepareSettings() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        ui::applyTheme(qEnvironmentVariable("CUTAWAY_THEME") == "dark" ? ui::Theme::Dark : ui::Theme::Light);
    }
    void showWindow(QSize size = {}) {
        QSettings().clear();
        m_main = std::make_unique<ui::MainWindow>(ui::makeSessionSource());
        if (size.isValid()) m_main->resize(size);
        m_main->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_main.get()));
        m_main->activateWindow();
    }
    /// The button of a window whose text starts so, its mnemonic apart; null if there is none.
    static QPushButton* buttonOf(const QWidget& window, const QString& start) {
        for (auto* found : window.findChildren<QPushButton*>())
            if (found->text().remove('&').startsWith(start)) return found;
        return nullptr;
    }
    /// Pictures for a person to look at, with CUTAWAY_PICTURES=FOLDER, once the window has stood for so long.
    void picture(const QString& name, int milliseconds = 150) {
        const QString folder = qEnvironmentVariable("CUTAWAY_PICTURES");
        if (folder.isEmpty()) return QTest::qWait(0);
        QTest::qWait(milliseconds);
        const QString theme = qEnvironmentVariable("CUTAWAY_THEME");
        const QString file = theme.isEmpty() ? name : name + '-' + theme;
        QVERIFY(m_main->grab().save(folder + '/' + file + ".png"));
    }
};

}  // namespace cutaway::testing
