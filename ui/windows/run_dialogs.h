#pragma once
// What to compile and how to execute, asked before it is done. The last answers come back next time (QSettings).
#include <QDialog>

#include "cutaway/session.h"

class QCheckBox;
class QComboBox;
class QLineEdit;
class QSpinBox;

namespace cutaway::ui {

class CompileDialog : public QDialog {
    Q_OBJECT

  public:
    explicit CompileDialog(const QStringList& stages, QWidget* parent = nullptr);
    CompileOptions options() const;
    /// The answers of last time; what Ctrl+B uses without asking.
    static CompileOptions remembered();

  private:
    QComboBox *m_mode, *m_target, *m_stage;
    QCheckBox *m_freeze, *m_parity;
};

class ExecuteDialog : public QDialog {
    Q_OBJECT

  public:
    explicit ExecuteDialog(QWidget* parent = nullptr);
    RunOptions options() const;

  private:
    QWidget* fileField(QLineEdit* field, const QString& title);
    QComboBox* m_backend;
    QLineEdit *m_inputs, *m_expect;
    QSpinBox *m_repeat, *m_timeout;
};

/// What to look for among the rewrites of a run.
class BisectDialog : public QDialog {
    Q_OBJECT

  public:
    explicit BisectDialog(QWidget* parent = nullptr);
    BisectOptions options() const;

  private:
    QComboBox* m_check;
    QLineEdit *m_tolerance, *m_inputs, *m_command;
};

}  // namespace cutaway::ui
