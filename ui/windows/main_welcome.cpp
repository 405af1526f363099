// The main window while no model is open: the welcome page in place of the windows, which come back as they were.
#include <QDockWidget>
#include <QMenuBar>
#include <QToolBar>

#include "ui/session/known_files.h"
#include "ui/windows/action_icons.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/welcome_page.h"

namespace cutaway::ui {

void MainWindow::makeWelcome() {
    m_welcome = new WelcomePage;
    setCentralWidget(m_welcome);
    connect(m_welcome, &WelcomePage::openWanted, this, &MainWindow::chooseFile);
    connect(m_welcome, &WelcomePage::keysWanted, this, &MainWindow::showKeys);
    connect(m_welcome, &WelcomePage::fileWanted, this, [this](const QString& path) { open(path); });
    connect(m_welcome, &WelcomePage::folderWanted, this, [this] { actionNamed(*this, "Ctrl+Shift+O")->trigger(); });
    connect(m_controller, &SessionController::modelOpened, this, [this] {
        rememberFile(m_controller->path(), QString::fromStdString(m_controller->model()->format));
        if (!m_welcome->isHidden()) showWindows();
    });
    connect(m_controller, &SessionController::modelClosed, this, [this] {
        showWelcome();
        updateTitle();
    });
    showWelcome();
}

void MainWindow::showWelcome() {
    m_arrangement = saveState();
    // Only the log says something without a model.
    for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
        dock->hide();
        dock->toggleViewAction()->setEnabled(dock->objectName() == QLatin1String("log"));
    }
    if (auto* stepping = findChild<QToolBar*>(QStringLiteral("stepping"))) stepping->hide();
    enableModelActions(*this, false);
    m_welcome->refresh();
    m_welcome->show();
    m_welcome->setFocus();
}

void MainWindow::showWindows() {
    m_welcome->hide();
    for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly))
        dock->toggleViewAction()->setEnabled(true);
    enableModelActions(*this, true);
    restoreState(m_arrangement);
}

/// How the windows stand, or will again.
QByteArray MainWindow::arrangement() const { return m_welcome->isHidden() ? saveState() : m_arrangement; }

}  // namespace cutaway::ui
