#pragma once
// The Search window: nodes of the graphs on show that match words or conditions (cutaway/node_query.h).
#include <QVector>
#include <memory>

#include "ui/windows/window.h"

class QLineEdit;
class QTreeWidget;

namespace cutaway::ui {

class ElidedLabel;

class SearchWindow : public Window {
    Q_OBJECT

  public:
    SearchWindow(const WindowRow& tableRow, const WindowParts& parts);

    void focusField();
    void nextHit(bool forward);
    int hitCount() const;
    /// Of a node of the graph on show; empty if it has none.
    QString nameOf(NodeKey id) const;
    const std::shared_ptr<const UnionGraph>& graph() const { return m_graph; }

  private:
    void search();
    void followNode(NodeKey node);
    void showCount();

    Selection& m_selection;
    std::shared_ptr<const UnionGraph> m_graph;
    std::shared_ptr<const NodeIndex> m_nodes;  // of that graph
    QLineEdit* m_field;
    ElidedLabel* m_count;
    QTreeWidget* m_hits;
    QHash<QString, QString> m_words;  // that were searched for, by model
    QString m_model;
    int m_all = 0;  // hits, those that are not listed too
    bool m_searched = false;
};

}  // namespace cutaway::ui
