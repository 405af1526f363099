#pragma once
// The Explain window: for the current node, every rule that may start there, with the answer whether it applies to the
// graph before the current step and if not why; for the current step what each rule tried, did and cost.

#include "ui/models/explain_model.h"
#include "ui/windows/window.h"

class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QStackedWidget;
class QTextBrowser;
class QTreeView;

namespace cutaway::ui {

class Columns;

class ExplainWindow : public Window {
    Q_OBJECT

  public:
    ExplainWindow(const WindowRow& tableRow, const WindowParts& parts);
    const ExplainModel& model() const { return m_model; }
    /// Asks about the current node, if somebody sees this window.
    void ask();

  private:
    void arrangeRows();
    void showAnswers(const Explained& explained);
    void showRule();
    void go();
    void toggle(const QString& name, bool enabled);
    void showMenu(QPoint at);
    void copyRow();
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    int currentRow() const;

    SessionController& m_controller;
    Selection& m_selection;
    ExplainModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QSortFilterProxyModel* m_filtered;
    QLabel *m_title, *m_empty;
    QLineEdit* m_filter;
    QTreeView* m_rows;
    Columns* m_columns = nullptr;
    QTextBrowser* m_text;
    QStackedWidget* m_pages;
    bool m_seen = false;  // a dock behind another tab counts as visible to Qt
};

}  // namespace cutaway::ui
