#pragma once
// The Explain window: for the current node, every rule that may start there, with the answer whether it applies to the
// graph before the current step and if not why; for the current step what each rule tried, did and cost.
#include <QDockWidget>

#include "ui/models/explain_model.h"
#include "ui/session/session_controller.h"

class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QStackedWidget;
class QTextBrowser;
class QTreeView;

namespace cutaway::ui {

class Columns;

class ExplainWindow : public QDockWidget {
    Q_OBJECT

  public:
    ExplainWindow(SessionController& controller, Selection& selection, QWidget* parent = nullptr);
    const ExplainModel& model() const { return m_model; }
    /// Asks about the current node, if somebody sees this window.
    void ask();

  signals:
    void message(const QString& text);
    /// Somebody wants to see what a rule did.
    void rewritesWanted(const QString& rule);

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
