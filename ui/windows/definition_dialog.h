#pragma once
// What an operator computes that no table knows, to be written and kept in the user's folder.
#include <QDialog>

class QDialogButtonBox;
class QLabel;
class QPlainTextEdit;

namespace cutaway::ui {

class DefinitionDialog : public QDialog {
    Q_OBJECT

  public:
    /// Begins with the text.
    explicit DefinitionDialog(const QString& text, QWidget* parent = nullptr);
    /// Writes the definition; stays open where that fails.
    void accept() override;

  private:
    void check();

    QPlainTextEdit* m_text;
    QLabel* m_problem;
    QDialogButtonBox* m_buttons;
};

}  // namespace cutaway::ui
