// The bars below the menus: actions and stepping, and under them what the step does and what went wrong.
#include <QPushButton>
#include <QToolBar>
#include <QVBoxLayout>

#include "ui/windows/commands.h"
#include "ui/windows/main_window.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/rewrite_bar.h"
#include "ui/windows/sentence_label.h"
#include "ui/windows/welcome_page.h"

namespace cutaway::ui {

void MainWindow::makeBars() {
    auto* sentence = new SentenceLabel(this);
    auto* bar = new RewriteBar(*m_controller, *m_selection, *m_stepper, *sentence);
    m_stepping = new QToolBar(tr("Stepping"), this);
    m_stepping->setObjectName(QStringLiteral("stepping"));
    m_stepping->setMovable(false);
    bar->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    m_stepping->addWidget(bar);
    connect(bar, &RewriteBar::explainWanted, this, [this] { explainHere(*this); });

    m_problems = new ProblemBar(this);
    auto* column = new QWidget;
    auto* rows = new QVBoxLayout(column);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    for (QWidget* row : std::initializer_list<QWidget*>{sentence, m_problems}) {
        row->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        rows->addWidget(row);
    }
    m_lines = new QToolBar(tr("Step and Problems"), this);
    m_lines->setObjectName(QStringLiteral("problems"));
    m_lines->setMovable(false);
    m_lines->toggleViewAction()->setVisible(false);
    m_lines->addWidget(column);

    addToolBar(Qt::TopToolBarArea, makeActionBar());
    addToolBar(Qt::TopToolBarArea, m_stepping);
    addToolBarBreak(Qt::TopToolBarArea);
    addToolBar(Qt::TopToolBarArea, m_lines);
    connect(m_controller, &SessionController::problem, m_problems, &ProblemBar::showProblem);
    connect(m_controller, &SessionController::problem, this, &MainWindow::updateBars);
    connect(m_problems, &ProblemBar::goTo, m_selection, &Selection::setPlace);
    for (QPushButton* button : m_problems->findChildren<QPushButton*>())
        connect(button, &QPushButton::clicked, this, &MainWindow::updateBars);
}

/// Which bars are there does not belong to an arrangement, though Qt keeps it there: an empty one may not come back.
void MainWindow::updateBars() {
    const bool windows = m_welcome && m_welcome->isHidden();
    m_stepping->setVisible(windows);
    m_lines->setVisible(windows || !m_problems->isHidden());
}

void MainWindow::restoreArrangement(const QByteArray& state) {
    restoreState(state);
    updateBars();
}

}  // namespace cutaway::ui
