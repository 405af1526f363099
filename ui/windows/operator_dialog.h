#pragma once
// Which operator to compile, and for which call.
#include <QDialog>

#include "cutaway/operators.h"

class QComboBox;
class QDialogButtonBox;
class QLineEdit;
class QPlainTextEdit;

namespace cutaway::ui {

class OperatorDialog : public QDialog {
    Q_OBJECT

  public:
    /// Starts from the answers of last time.
    explicit OperatorDialog(QWidget* parent = nullptr);
    OperatorOptions options() const;
    void accept() override;

  private:
    void follow();

    QLineEdit *m_op, *m_inputs;
    QPlainTextEdit* m_arguments;
    QComboBox* m_device;
    QDialogButtonBox* m_buttons;
};

}  // namespace cutaway::ui
