#pragma once
// The Search window: nodes of the graphs on show that match words or conditions (ui/models/node_query.h).
#include <QDockWidget>
#include <QVector>
#include <memory>

#include "ui/session/session_controller.h"

class QLineEdit;
class QTreeWidget;

namespace cutaway::ui {

class ElidedLabel;

class SearchWindow : public QDockWidget {
    Q_OBJECT

  public:
    SearchWindow(SessionController& controller, Selection& selection, QWidget* parent = nullptr);

    void focusField();
    void nextHit(bool forward);
    int hitCount() const;
    /// Of a node of the graph on show; empty if it has none.
    QString nameOf(NodeId id) const;
    const std::shared_ptr<const UnionGraph>& graph() const { return m_graph; }

  private:
    void search();

    Selection& m_selection;
    std::shared_ptr<const UnionGraph> m_graph;
    QLineEdit* m_field;
    ElidedLabel* m_count;
    QTreeWidget* m_hits;
};

}  // namespace cutaway::ui
