#pragma once
// The dialogs before executing a graph and before searching the rewrite that broke it.
#include <QDialog>

#include "cutaway/bisect.h"

class QComboBox;
class QLineEdit;
class QSpinBox;

namespace cutaway::ui {

class ExecuteDialog : public QDialog {
    Q_OBJECT

  public:
    /// Starts from the answers of last time; inputs and expected outputs are those that lie beside the model, if there
    /// are any.
    /// `notCompiled`: why generated code cannot be run; empty if it can.
    /// `training`: the run computes gradients, which can be written and compared.
    explicit ExecuteDialog(const QString& model, const QString& notCompiled = {}, bool training = false,
                           Target target = Target::Cpu, QWidget* parent = nullptr);
    RunOptions options() const;
    void accept() override;

  private:
    QString m_model;
    QWidget* fileField(QLineEdit* field, const QString& title, bool written = false);
    QComboBox* m_backend;
    QLineEdit *m_inputs, *m_expect;
    QLineEdit *m_gradients = nullptr, *m_expectGradients = nullptr;  // of training
    QSpinBox *m_repeat, *m_timeout;
};

/// The file of tensors that lies beside a model: model.inputs.safetensors, else inputs.safetensors; empty if there is
/// none.
QString tensorsBeside(const QString& model, const QString& what);

/// How generated code is timed: as many runs as fit into some seconds. `model`: beside which inputs and expected
/// outputs may lie, or that was executed with some; empty: none.
RunOptions timingOptions(Target target, const QString& model);

/// What to look for among the rewrites of a run.
class BisectDialog : public QDialog {
    Q_OBJECT

  public:
    /// `model`: beside which inputs may lie.
    explicit BisectDialog(const QString& model = {}, QWidget* parent = nullptr);
    BisectOptions options() const;

  private:
    QComboBox* m_check;
    QLineEdit *m_tolerance, *m_inputs, *m_command;
};

}  // namespace cutaway::ui
