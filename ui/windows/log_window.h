#pragma once
// The Log window: every message of this program run. On Enter or double click a row with a place goes there, and one
// about written files opens their folder.
#include "ui/windows/window.h"

class QTableView;

namespace cutaway::ui {

class Columns;

class LogWindow : public Window {
    Q_OBJECT

  public:
    LogWindow(const WindowRow& tableRow, const WindowParts& parts);

  private:
    void copyRows();
    void showColumns();
    void resizeEvent(QResizeEvent* event) override;
    QTableView* m_table;
    Columns* m_columns = nullptr;
};

}  // namespace cutaway::ui
