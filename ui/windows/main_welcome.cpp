// The main window while no model is open: the welcome page in place of the windows, which come back as they were.
#include "ui/session/known_files.h"
#include "ui/windows/commands.h"
#include "ui/windows/main_window.h"
#include "ui/windows/start_folder.h"
#include "ui/windows/welcome_page.h"

namespace cutaway::ui {

void MainWindow::makeWelcome() {
    m_welcome = new WelcomePage;
    setCentralWidget(m_welcome);
    connect(m_welcome, &WelcomePage::openWanted, this, [this] { chooseFile(*this); });
    connect(m_welcome, &WelcomePage::keysWanted, this, [this] { showKeys(*this); });
    connect(m_welcome, &WelcomePage::fileWanted, this, [this](const QString& path) { open(path); });
    connect(m_welcome, &WelcomePage::folderWanted, this, [this] { chooseFolder(*this); });
    connect(m_controller, &SessionController::modelOpened, this, [this] {
        beginAt(m_controller->path());
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
    for (Window* window : m_windows) {
        window->hide();
        window->toggleViewAction()->setEnabled(!window->row().needsModel);
    }
    m_welcome->refresh();
    m_welcome->show();
    updateBars();
    m_welcome->setFocus();
}

void MainWindow::showWindows() {
    m_welcome->hide();
    for (Window* window : m_windows) window->toggleViewAction()->setEnabled(true);
    restoreArrangement(m_arrangement);
}

/// The arrangement of the windows, or the one that comes back when the welcome page goes.
QByteArray MainWindow::arrangement() const { return m_welcome->isHidden() ? saveState() : m_arrangement; }

}  // namespace cutaway::ui
