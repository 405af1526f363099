#pragma once
// The Filmstrip window: several states of the graph beside each other, each by itself, with one current node.
#include "ui/graph/graph_view.h"
#include "ui/windows/window.h"

class QLabel;
class QSplitter;
class QStackedWidget;

namespace cutaway::ui {

class FilmstripWindow : public Window {
    Q_OBJECT

  public:
    static constexpr size_t kMostStates = 6;  // more are too narrow to be read

    FilmstripWindow(const WindowRow& tableRow, const WindowParts& parts);
    /// In the order in which they stand there.
    void showStates(const std::vector<Place>& places);
    /// The pictures from left to right.
    const std::vector<GraphView*>& views() const { return m_views; }
    bool isSettled() const override;

  private:
    void clear();
    void showKernels();
    void addFrame(const Place& place, const std::shared_ptr<const UnionGraph>& graph);

    SessionController& m_controller;
    Selection& m_selection;
    QLabel* m_empty;
    QSplitter* m_strip;
    QStackedWidget* m_pages;
    std::vector<GraphView*> m_views;
};

}  // namespace cutaway::ui
