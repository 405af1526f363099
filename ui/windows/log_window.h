#pragma once
// The Log window: every message of this program run; a row with a place goes there on Enter or double click.
#include <QDockWidget>

#include "ui/session/session_controller.h"

class QTableView;

namespace cutaway::ui {

class Columns;

class LogWindow : public QDockWidget {
    Q_OBJECT

  public:
    LogWindow(SessionController& controller, Selection& selection, QWidget* parent = nullptr);

  private:
    void copyRows();
    void showColumns();
    void resizeEvent(QResizeEvent* event) override;
    QTableView* m_table;
    Columns* m_columns = nullptr;
};

}  // namespace cutaway::ui
