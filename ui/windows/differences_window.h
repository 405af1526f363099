#pragma once
// The Differences window: the parts in which the two graphs on show differ, node by node, and the pairs of nodes that
// are not sure. A click goes there.
#include "ui/windows/window.h"

class QPushButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace cutaway::ui {

class ElidedLabel;

class DifferencesWindow : public Window {
    Q_OBJECT

  public:
    DifferencesWindow(const WindowRow& tableRow, const WindowParts& parts);

  private:
    void showParts();
    void addPart(const DiffPart& part);
    void addUnsure();
    QTreeWidgetItem* addNode(QTreeWidgetItem& part, NodeKey id);
    void goTo(const QTreeWidgetItem* item);
    void goToPart(bool forward);
    void followNode(NodeKey node);

    Selection& m_selection;
    std::shared_ptr<const Shown> m_shown;
    ElidedLabel* m_summary;
    QPushButton *m_previous, *m_next;
    QTreeWidget* m_parts;
    bool m_onScreen = false, m_listed = false;  // the list is made when somebody can see it
};

}  // namespace cutaway::ui
