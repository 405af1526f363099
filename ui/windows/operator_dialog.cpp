#include "ui/windows/operator_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>

#include "ui/windows/start_folder.h"

namespace cutaway::ui {
namespace {

constexpr QLatin1String kStoredOp("operator/op"), kStoredArguments("operator/arguments");

}  // namespace

OperatorDialog::OperatorDialog(QWidget* parent)
    : QDialog(parent),
      m_op(new QLineEdit(QSettings().value(kStoredOp).toString())),
      m_inputs(new QLineEdit),
      m_arguments(new QPlainTextEdit(QSettings().value(kStoredArguments).toString())),
      m_device(new QComboBox),
      m_buttons(new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel)) {
    setWindowTitle(tr("Compile One Operator"));
    m_op->setPlaceholderText(QStringLiteral("aten::add.Tensor"));
    m_arguments->setPlaceholderText(QStringLiteral("f32[2, 3]\nf32[3]\nalpha=2"));
    m_arguments->setToolTip(
        tr("In their order, or as name=VALUE: a tensor as its type, a list of tensors, or a literal "
           "as Python writes it"));
    m_arguments->setTabChangesFocus(true);
    m_inputs->setPlaceholderText(tr("none: the tensors are random"));
    m_inputs->setToolTip(tr("The call's tensors (safetensors) by the names of their parameters"));
    m_device->addItem(QStringLiteral("cpu"));
    m_device->addItem(QStringLiteral("cuda"));
    auto* choose = new QPushButton(tr("Choose…"));
    auto* file = new QHBoxLayout;
    file->addWidget(m_inputs, 1);
    file->addWidget(choose);
    auto* rows = new QFormLayout(this);
    rows->addRow(tr("&Operator:"), m_op);
    rows->addRow(tr("&Arguments, one a line:"), m_arguments);
    rows->addRow(tr("&Inputs:"), file);
    rows->addRow(tr("&Device:"), m_device);
    rows->addRow(m_buttons);
    m_buttons->button(QDialogButtonBox::Ok)->setText(tr("Compile"));
    connect(m_buttons, &QDialogButtonBox::accepted, this, &OperatorDialog::accept);
    connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_op, &QLineEdit::textChanged, this, &OperatorDialog::follow);
    connect(choose, &QPushButton::clicked, this, [this] {
        const QString path = beginAt(QFileDialog::getOpenFileName(this, tr("The call's tensors"), startFolder(),
                                                                  tr("Tensors (*.safetensors);;All files (*)")));
        if (!path.isEmpty()) m_inputs->setText(path);
    });
    follow();
}

void OperatorDialog::follow() {
    QPushButton& compile = *m_buttons->button(QDialogButtonBox::Ok);
    compile.setEnabled(!m_op->text().trimmed().isEmpty());
    compile.setToolTip(compile.isEnabled() ? QString() : tr("Name an operator first"));
}

OperatorOptions OperatorDialog::options() const {
    OperatorOptions options;
    options.op = m_op->text().trimmed().toStdString();
    const QStringList lines = m_arguments->toPlainText().split(QChar('\n'));
    for (const QString& line : lines)
        if (const QString argument = line.trimmed(); !argument.isEmpty())
            options.arguments.push_back(argument.toStdString());
    options.inputsFile = m_inputs->text().trimmed().toStdString();
    options.device = m_device->currentIndex() == 1 ? Target::Cuda : Target::Cpu;
    return options;
}

void OperatorDialog::accept() {
    QSettings().setValue(kStoredOp, m_op->text().trimmed());
    QSettings().setValue(kStoredArguments, m_arguments->toPlainText());
    QDialog::accept();
}

}  // namespace cutaway::ui
