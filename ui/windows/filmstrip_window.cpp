#include "ui/windows/filmstrip_window.h"

#include <QLabel>
#include <QSplitter>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/windows/elided_label.h"

namespace cutaway::ui {

FilmstripWindow::FilmstripWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_empty(new QLabel),
      m_strip(new QSplitter(Qt::Horizontal)),
      m_pages(new QStackedWidget) {
    m_empty->setText(
        tr("Three and more states of the graph stand here beside each other, with one current node.\n\nCtrl+click them "
           "in the Steps window."));
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(16);
    m_strip->setChildrenCollapsible(false);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(m_strip);
    setWidget(m_pages);
    for (const auto ended : {&SessionController::modelOpened, &SessionController::modelClosed})
        connect(&m_controller, ended, this, &FilmstripWindow::clear);
    connect(&m_selection, &Selection::nodeChanged, this, [this](NodeKey node) {
        for (GraphView* view : m_views)
            if (view->canvas().currentId() != node) view->goTo(node);
    });
    connect(&m_controller.kernelQuery(), &KernelQuery::changed, this, &FilmstripWindow::showKernels);
}

void FilmstripWindow::clear() {
    for (GraphView* view : m_views) delete view->parentWidget();
    m_views.clear();
    m_pages->setCurrentIndex(0);
}

void FilmstripWindow::showStates(const std::vector<Place>& places) {
    m_controller.graphsAt(places, [this, places](const std::vector<std::shared_ptr<const UnionGraph>>& graphs) {
        clear();
        for (size_t i = 0; i < graphs.size(); ++i) addFrame(places[i], graphs[i]);
        showKernels();
        m_pages->setCurrentIndex(1);
        m_strip->setSizes(QList<int>(m_strip->count(), std::max(1, m_strip->width() / m_strip->count())));
    });
}

/// So that a state without the current node shows what it was or came to be.
void FilmstripWindow::showKernels() {
    const auto marks = m_controller.kernelQuery().marks(m_selection.place().run);
    for (GraphView* view : m_views) view->setKernels({marks, {}, false});
}

void FilmstripWindow::addFrame(const Place& place, const std::shared_ptr<const UnionGraph>& graph) {
    auto* frame = new QWidget;
    auto* column = new QVBoxLayout(frame);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    auto* title = new ElidedLabel;
    title->setText(m_controller.placeName(place));
    title->setMargin(4);
    auto* view = new GraphView(frame);
    view->canvas().setAccessibleName(tr("Graph, %1").arg(title->text()));
    column->addWidget(title);
    column->addWidget(view, 1);
    m_strip->addWidget(frame);
    m_views.push_back(view);
    connect(view, &GraphView::nodeChosen, &m_selection, &Selection::setNode);
    connect(view, &GraphView::nodeFollows, &m_selection, &Selection::moveNode);
    connect(view, &GraphView::nodeActivated, this, &FilmstripWindow::nodeOpened);
    connect(view, &GraphView::menuWanted, this, &FilmstripWindow::menuWanted);
    connect(view, &GraphView::message, this, &FilmstripWindow::message);
    connect(view, &GraphView::sceneShown, this, [this, view] {
        view->setCurrent(m_selection.node(), true);
        emit settled();
    });
    view->showGraph(graph, title->text(), m_selection.node());
}

bool FilmstripWindow::isSettled() const {
    return std::none_of(m_views.begin(), m_views.end(), [](GraphView* view) { return view->builder().isBusy(); });
}

}  // namespace cutaway::ui
