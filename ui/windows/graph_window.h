#pragma once
// The Graph window: the canvas, its mode, folding, and what is on show in words.

#include "ui/graph/graph_view.h"
#include "ui/windows/window.h"

class QCheckBox;
class QComboBox;
class QSpinBox;

namespace cutaway::ui {

class ElidedLabel;

class GraphWindow : public Window {
    Q_OBJECT

  public:
    GraphWindow(const WindowRow& tableRow, const WindowParts& parts);

    GraphView& view() { return *m_view; }
    void setMode(GraphMode mode);
    /// "model.pt2: decompose", with what changed.
    QString pictureTitle() const;
    /// Makes a node the current one and brings it into view, out of its fold if it is in one.
    void goTo(NodeKey id);
    /// To the next or previous changed node.
    void goToChange(bool forward);
    /// What the colours of calls mean, below the picture; kept for the next session.
    void showKey(bool shown);
    bool isKeyShown() const;
    bool isSettled() const override;
    std::optional<Activity> activity() const override { return m_layout; }
    void stopActivity() override { m_view->builder().useSimpleLayout(); }
    static std::span<const KeyHint> keys();

  private:
    void showWhat(const Shown& what);
    void sceneShown(const QString& note);
    // graph_window_part.cpp
    QWidget* makePartBar();
    void showPartBar();
    void connectHistory();
    // graph_window_sides.cpp
    QString modulesSetting() const;  // where it is kept which modules of the model are closed
    QComboBox* makeModules();
    void enterBeside(const Shown& what);
    std::shared_ptr<const UnionGraph> graphOnShow() const;
    void showSides();
    void showHeat();
    void showKernels();
    static QString sidesCounted(const UnionGraph& graph);
    QString countsOf(const Shown& what) const;
    QWidget* makeBar();
    QWidget* makeLegend();
    QWidget* makeKey();

    SessionController& m_controller;
    Selection& m_selection;
    GraphView* m_view;
    QComboBox* m_mode = nullptr;
    QCheckBox* m_fold = nullptr;
    QSpinBox* m_hops = nullptr;
    ElidedLabel *m_title = nullptr, *m_counts = nullptr, *m_note = nullptr;
    std::vector<QWidget*> m_marks, m_sideMarks, m_heatMarks;  // of the legend
    QComboBox* m_module = nullptr;                            // shown with a forward beside its backward
    std::shared_ptr<const UnionGraph> m_beside;               // the forward beside its backward, if on show
    QWidget* m_key = nullptr;
    QWidget* m_partBar = nullptr;  // says which part is on show alone
    ElidedLabel* m_partText = nullptr;
    QSpinBox* m_partHops = nullptr;
    std::shared_ptr<const GraphLook> m_returnTo;  // how the next picture was looked at, if it is of
    std::optional<Comparison> m_returnPlace;      // this place
    int m_modeBefore = 0;
    bool m_fitNext = false;             // another module: both of its sides come into view
    std::optional<Comparison> m_shown;  // what is drawn
    bool m_scheduled = false;           // its graph says which nodes share a kernel
    bool m_drawing = false;
    std::optional<Activity> m_layout;  // the layout under way, in its own process
};

}  // namespace cutaway::ui
