// The Debug menu of the main window: stepping, single rewrites, what can be asked about a node.
#include <QApplication>
#include <QClipboard>
#include <QInputDialog>
#include <QMenuBar>
#include <algorithm>

#include "ui/session/stepper.h"
#include "ui/windows/explain_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/log_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/node_window.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"

namespace cutaway::ui {

void MainWindow::makeDebugMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&Debug"));
    menu->addAction(tr("&Next Changed Step"), QKeySequence(Qt::Key_F10), this, [this] { m_stepper->step(true, true); });
    menu->addAction(tr("&Previous Changed Step"), QKeySequence(Qt::SHIFT | Qt::Key_F10), this,
                    [this] { m_stepper->step(false, true); });
    menu->addAction(tr("Next Step of &Any Kind"), QKeySequence(Qt::CTRL | Qt::Key_F10), this,
                    [this] { m_stepper->step(true, false); });
    menu->addAction(tr("Previous Step of An&y Kind"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F10), this,
                    [this] { m_stepper->step(false, false); });
    menu->addSeparator();
    menu->addAction(tr("Next &Rewrite"), QKeySequence(Qt::Key_F11), this, [this] { m_stepper->rewrite(true); });
    menu->addAction(tr("Previous Re&write"), QKeySequence(Qt::SHIFT | Qt::Key_F11), this,
                    [this] { m_stepper->rewrite(false); });
    menu->addAction(tr("Step &Out to the Whole Step"), QKeySequence(Qt::CTRL | Qt::Key_F11), this,
                    [this] { m_stepper->out(); });
    menu->addAction(tr("Rewrite That Changed &This Node"), QKeySequence(Qt::CTRL | Qt::Key_R), this,
                    &MainWindow::goToTouch);
    menu->addAction(tr("&Go to Rewrite Number…"), QKeySequence(Qt::CTRL | Qt::Key_G), this, &MainWindow::askFuel);
    QAction* soFar = menu->addAction(tr("Show Rewrites &Cumulatively"), m_stepper, &Stepper::setAllSoFar);
    soFar->setCheckable(true);
    connect(m_stepper, &Stepper::allSoFarChanged, soFar, &QAction::setChecked);
    menu->addAction(tr("&Explain"), QKeySequence(Qt::CTRL | Qt::Key_E), this, &MainWindow::explainHere);
    menu->addSeparator();
    menu->addAction(tr("&Find the Rewrite That Broke the Graph…"), this, &MainWindow::askBisect);
    menu->addSeparator();
    menu->addAction(tr("Mark Step as A"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_A), this,
                    [this] { m_steps->markCurrent(false); });
    menu->addAction(tr("Mark Step as B"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_D), this,
                    [this] { m_steps->markCurrent(true); });
}

void MainWindow::askFuel() {
    if (!currentRun()) return;
    const int count = m_stepper->fuelOfRun();
    if (count == 0) return say(tr("This run made no single rewrites."));
    bool given = false;
    const int number =
        QInputDialog::getInt(this, tr("Go to rewrite"), tr("Rewrite of the whole run, 1 to %1:").arg(count),
                             std::max(1, m_stepper->fuel()), 1, count, 1, &given);
    if (given) m_stepper->toFuel(number);
}

/// The rewrite of the current step that touched the current node.
void MainWindow::goToTouch() {
    const NodeId node = m_selection->node();
    const StepInfo* step = m_stepper->currentStep();
    if (node == NodeId::None || !step) return say(tr("Choose a step and a node first."));
    m_controller->findRewrite(
        m_selection->place().run, step->index, node,
        [this, name = QString::fromStdString(step->name), place = m_selection->place(), node](int number) {
            if (number == 0) return say(tr("No rewrite of %1 changed this node.").arg(name));
            m_selection->go(comparisonAt({place.run, place.step, number}), node);
        });
}

void MainWindow::showNodeMenu(NodeId node, QPoint at) {
    const QString name = m_search->nameOf(node);
    QMenu menu;
    menu.addAction(tr("Explain rules at %1").arg(name), this, &MainWindow::explainHere);
    menu.addAction(tr("Go to the rewrite that changed it"), this, &MainWindow::goToTouch);
    menu.addAction(tr("List rewrites that started at it"), this,
                   [this, name] { m_steps->setFilter(QStringLiteral("at ") + name); });
    menu.addSeparator();
    menu.addAction(tr("Copy name"), this, [name] { QApplication::clipboard()->setText(name); });
    menu.exec(at);
}

void MainWindow::explainHere() {
    raiseWindow(m_explain);
    m_explain->ask();
}

/// What Enter and a double click on a node do.
void MainWindow::showNode(NodeId node) {
    m_selection->setNode(node);
    raiseWindow(m_node);
}

/// In the text if that is what somebody reads, else in the graph.
void MainWindow::nextChange(bool forward) {
    const bool reads = m_text->isAncestorOf(QApplication::focusWidget()) || !isOnScreen(&m_graph->view());
    if (reads && isOnScreen(m_text->widget())) m_text->goToChange(forward);
    else m_graph->goToChange(forward);
}

void MainWindow::askBisect() {
    const auto run = currentRun();
    if (!run) return;
    BisectDialog dialog(this);
    if (dialog.exec() != QDialog::Accepted) return;
    m_controller->bisect(*run, dialog.options());
}

}  // namespace cutaway::ui
