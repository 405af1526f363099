// The Graph window's pictures of a training run's partition: the joint graph with the side of each node, and the
// forward beside the backward.
#include <QComboBox>
#include <QSignalBlocker>

#include "ui/models/side_by_side.h"
#include "ui/windows/elided_label.h"
#include "ui/windows/graph_window.h"

namespace cutaway::ui {

QComboBox* GraphWindow::makeModules() {
    m_module = new QComboBox;
    m_module->setToolTip(tr("Which module's forward and backward are drawn"));
    m_module->setAccessibleName(tr("Module"));
    m_module->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_module->setMinimumContentsLength(14);
    m_module->hide();
    connect(m_module, &QComboBox::activated, this, [this] {
        m_drawing = m_fitNext = true;
        m_counts->setText(sidesCounted(*graphOnShow()));
        m_view->showGraph(graphOnShow(), m_title->text() + m_module->currentText());
    });
    return m_module;
}

/// A forward beside its backward belongs into two panes; the mode from before comes back with the next difference.
void GraphWindow::enterBeside(const Shown& what) {
    const bool was = m_beside != nullptr;
    m_beside = what.beside ? what.graph : nullptr;
    m_view->setLinked(!what.beside);
    m_view->setPaneNames(what.beside ? tr("Forward") : tr("Before"), what.beside ? tr("Backward") : tr("After"));
    m_module->setVisible(what.beside);
    if (what.beside) {
        const QString kept = m_module->currentData().toString();
        m_module->clear();
        m_module->addItem(tr("All modules"), QString());
        for (const std::string& name : modulesOf(*what.graph))
            m_module->addItem(QString::fromStdString(name), QString::fromStdString(name));
        m_module->setCurrentIndex(std::max(0, m_module->findData(kept)));
    }
    if (what.beside == was) return;
    if (what.beside) m_modeBefore = m_mode->currentIndex();
    m_mode->setCurrentIndex(what.beside ? static_cast<int>(GraphMode::SideBySide) : m_modeBefore);
}

std::shared_ptr<const UnionGraph> GraphWindow::graphOnShow() const {
    const std::string module = m_module->currentData().toString().toStdString();
    if (!m_beside || module.empty()) return m_beside;
    return std::make_shared<const UnionGraph>(onlyModule(*m_beside, module));
}

QString GraphWindow::sidesCounted(const UnionGraph& graph) {
    return tr("%1 only forward, %2 only backward, %3 in both")
        .arg(graph.removed)
        .arg(graph.added)
        .arg(graph.nodes.size() - static_cast<size_t>(graph.removed + graph.added));
}

void GraphWindow::showSides() {
    const auto& now = m_controller.partition();
    const Run* run = now && m_shown ? m_controller.runOf(now->run) : nullptr;
    const auto split = run ? run->splitStep() : std::nullopt;
    const bool joint = split && *m_shown == comparisonAt({run->id, *split, -1});
    const bool beside = m_beside && run && m_shown->after.run == run->id;
    std::shared_ptr<const SideMarks> marks;
    if (now && now->problem.isEmpty() && beside)
        marks = std::make_shared<const SideMarks>(sidesOf(*m_beside, now->sides));
    else if (now && now->problem.isEmpty() && joint)
        marks = std::make_shared<const SideMarks>(
            m_controller.candidate() ? SideMarks(now->sides, *m_controller.candidate()) : SideMarks(now->sides));
    const bool single = !m_shown || m_shown->before == m_shown->after;
    for (QWidget* mark : m_marks) mark->setVisible(!marks && !single);
    for (QWidget* mark : m_sideMarks) mark->setVisible(marks != nullptr);
    m_view->setMarks(std::move(marks));
    showHeat();
}

void GraphWindow::showKernels() {
    if (!m_shown) return;
    const Place& place = m_shown->after;
    const Run* run = m_controller.runOf(place.run);
    KernelNames kernels;
    kernels.marks = run ? m_controller.kernelQuery().marks(place.run) : nullptr;
    const bool step = run && place.step >= 0 && place.step < static_cast<int>(run->steps.size());
    if (step && run->splitStep()) {
        const std::string& graphName = run->steps[static_cast<size_t>(place.step)].graphName;
        if (graphName == "forward" || graphName == "backward") kernels.graphName = QString::fromStdString(graphName);
    }
    kernels.named = m_scheduled;
    m_view->setKernels(kernels);
}

/// Errors of a checked run lie over the graph that it checked, or what a plugin's colouring says over the one that it
/// was asked about.
void GraphWindow::showHeat() {
    const CheckedRuns& runs = m_controller.checkedRuns();
    const GraphColoring& coloring = m_controller.coloring();
    const bool colored = coloring.marks() && m_shown && m_shown->after == coloring.place();
    const bool here = !colored && runs.heat() && m_shown && m_shown->after == runs.place();
    const std::shared_ptr<const HeatMarks> heat = colored ? coloring.marks() : here ? runs.heat() : nullptr;
    if (heat)
        for (const auto* marks : {&m_marks, &m_sideMarks})
            for (QWidget* mark : *marks) mark->hide();
    for (QWidget* mark : m_heatMarks) mark->setVisible(here);
    m_view->setHeat(heat);
}

}  // namespace cutaway::ui
