#pragma once
// The Graph window: the canvas, its mode, folding, and what is on show in words.
#include <QDockWidget>

#include "ui/graph/graph_view.h"
#include "ui/session/session_controller.h"

class QCheckBox;
class QComboBox;
class QSpinBox;

namespace cutaway::ui {

class ElidedLabel;

class GraphWindow : public QDockWidget {
    Q_OBJECT

  public:
    GraphWindow(SessionController& controller, Selection& selection, QWidget* parent = nullptr);

    GraphView& view() { return *m_view; }
    void setMode(GraphMode mode);
    /// "model.pt2: decompose", with what changed.
    QString pictureTitle() const;
    /// Makes a node the current one and brings it into view, out of its fold if it is in one.
    void goTo(NodeId id);
    /// To the next or previous changed node.
    void goToChange(bool forward);
    /// Whether the current place is on the screen: for pictures and tests.
    bool isSettled() const;

  signals:
    void settled();
    void message(const QString& text);

  private:
    void showWhat(const Shown& what);
    void sceneShown(const QString& note);
    QWidget* makeBar();
    QWidget* makeLegend();

    SessionController& m_controller;
    Selection& m_selection;
    GraphView* m_view;
    QComboBox* m_mode = nullptr;
    QCheckBox* m_fold = nullptr;
    QSpinBox* m_hops = nullptr;
    ElidedLabel *m_title = nullptr, *m_counts = nullptr, *m_note = nullptr;
    std::vector<QWidget*> m_marks;      // of the legend
    std::optional<Comparison> m_shown;  // what is drawn
    bool m_drawing = false;
};

}  // namespace cutaway::ui
