#pragma once
// The main window on a source of hand-made structs, for tests that drive it by keys, clicks and selection.
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "tests/ui/fake_source.h"
#include "tests/ui/patience.h"
#include "ui/windows/main_window.h"
#include "ui/windows/theme.h"

namespace cutaway::testing {

/// One window per test, with settings of its own.
struct MainWindowFixture {
    QTemporaryDir m_settings;
    std::shared_ptr<FakeSource::Control> m_control;
    std::unique_ptr<ui::MainWindow> m_main;

    void prepareSettings() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_settings.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        ui::applyTheme(ui::Theme::Light);
    }
    void showWindow() {
        QSettings().clear();
        m_control = std::make_shared<FakeSource::Control>();
        m_main = std::make_unique<ui::MainWindow>(std::make_unique<FakeSource>(m_control));
        m_main->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_main.get()));
        m_main->activateWindow();
    }
    void closeWindow() {
        m_control->hold = false;
        m_control->held = nullptr;
        m_main.reset();
    }
    void openAndCompile() {
        m_main->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), kPatience);
        press(Qt::Key_B, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().runs().empty() && m_main->isSettled(), kPatience);
    }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(m_main.get(), key, modifiers); }
    QString shownStep() const { return m_main->controller().placeName(m_main->selection().place()); }
};

}  // namespace cutaway::testing
