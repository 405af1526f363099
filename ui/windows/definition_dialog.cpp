#include "ui/windows/definition_dialog.h"

#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "cutaway/operator_files.h"

namespace cutaway::ui {

DefinitionDialog::DefinitionDialog(const QString& text, QWidget* parent)
    : QDialog(parent),
      m_text(new QPlainTextEdit(text)),
      m_problem(new QLabel),
      m_buttons(new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel)) {
    setWindowTitle(tr("Define an Operator"));
    resize(720, 420);
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setAccessibleName(tr("Definition"));
    m_problem->setWordWrap(true);
    m_problem->setTextFormat(Qt::PlainText);
    auto* what = new QLabel(
        tr("The schema as PyTorch prints it, and below “computes” one call a line, of ATen's operators or torch's "
           "functions. Types, values and gradients follow. It is kept in your folder of operators, and the model is "
           "opened again."));
    what->setWordWrap(true);
    auto* column = new QVBoxLayout(this);
    column->addWidget(what);
    column->addWidget(m_text, 1);
    column->addWidget(m_problem);
    column->addWidget(m_buttons);
    connect(m_buttons, &QDialogButtonBox::accepted, this, &DefinitionDialog::accept);
    connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_text, &QPlainTextEdit::textChanged, this, &DefinitionDialog::check);
    check();
}

void DefinitionDialog::check() {
    const auto made = checkOperators(m_text->toPlainText().toStdString(), tr("the definition").toStdString());
    m_problem->setText(made ? QString() : QString::fromStdString(made.error().text()));
    m_buttons->button(QDialogButtonBox::Save)->setEnabled(made && made->size() == 1);
}

void DefinitionDialog::accept() {
    const auto saved = saveOperator(m_text->toPlainText().toStdString());
    if (saved) return QDialog::accept();
    m_problem->setText(QString::fromStdString(saved.error().text()));
}

}  // namespace cutaway::ui
