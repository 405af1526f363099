#pragma once
// The Node window: all about the current node. Rows that name another node or a step go there on Enter or double click.

#include "ui/models/node_model.h"
#include "ui/windows/window.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;
class QTreeView;

namespace cutaway::ui {

class ElidedLabel;

class NodeWindow : public Window {
    Q_OBJECT

  public:
    NodeWindow(const WindowRow& tableRow, const WindowParts& parts);

  private:
    void showFacts(const NodeFacts& facts);
    void showWhole(const QModelIndex& row);
    void go(const QModelIndex& at);
    void goToLife(int step);
    void define();
    void resizeEvent(QResizeEvent* event) override;

    SessionController& m_controller;
    Selection& m_selection;
    NodeModel& m_model;  // a child, not a member: the view still asks it while this window closes
    ElidedLabel* m_title;
    QLabel* m_empty;
    QTreeView* m_tree;
    QPlainTextEdit* m_whole;  // of a value that its column cuts
    QPushButton* m_define;    // of an operator that no table knows
    QString m_definition;
    QStackedWidget* m_pages;
};

}  // namespace cutaway::ui
