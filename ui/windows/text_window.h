#pragma once
// The Text window: FX text of before and after, unified or side by side; its current line is the current node.

#include "ui/models/text_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QScrollBar;
class QStackedWidget;
class QTableView;

namespace cutaway::ui {

class ElidedLabel;

class TextWindow : public Window {
    Q_OBJECT

  public:
    TextWindow(const WindowRow& tableRow, const WindowParts& parts);

    void setSideBySide(bool sideBySide);
    void copyRunnable();
    bool isSettled() const override;
    /// To the next or previous changed line, and in it to the word.
    void goToChange(bool forward);

  private:
    void showText(const ShownText& what);
    void arrangeColumns();
    void arrangeScrolling();
    bool eventFilter(QObject* watched, QEvent* event) override;
    void followNode(NodeKey node);
    void copyRows();
    void goToRow(int row);
    void showWord(int row);
    QWidget* makeBar();

    SessionController& m_controller;
    Selection& m_selection;
    TextModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QTableView* m_table;
    QScrollBar* m_sides;  // scrolls both sides at once
    int m_longest = 0;    // pixels
    QComboBox* m_layout = nullptr;
    ElidedLabel* m_counts = nullptr;
    QStackedWidget* m_pages;
    bool m_following = false;
    std::optional<Comparison> m_shown;
};

}  // namespace cutaway::ui
