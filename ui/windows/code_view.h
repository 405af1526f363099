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

  protected:
    void changeEvent(QEvent* event) override;

  private:
    class Highlighter;
    void colorVisible();
    Highlighter* m_highlighter = nullptr;
    bool m_coloring = false;
};

}  // namespace cutaway::ui
