#pragma once
// Read-only code in colours. Only lines that somebody sees are coloured, so that a text of any length opens at once.
#include <QPlainTextEdit>

#include "ui/models/syntax.h"

namespace cutaway::ui {

class CodeView : public QPlainTextEdit {
    Q_OBJECT

  public:
    /// `hint`: what stands there while there is no code.
    CodeView(Language language, const QString& name, const QString& hint, QWidget* parent = nullptr);
    void setCode(const QString& code);
    /// Marks a line and brings it into view; -1: none.
    void markLine(int line);

  signals:
    /// By a click, or Enter where the cursor stands.
    void lineChosen(int line);

  protected:
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;

  private:
    class Highlighter;
    void colorVisible();
    Highlighter* m_highlighter = nullptr;
    bool m_coloring = false;
};

}  // namespace cutaway::ui
