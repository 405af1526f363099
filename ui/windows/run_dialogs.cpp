#include "ui/windows/run_dialogs.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleValidator>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QToolButton>

namespace cutaway::ui {
namespace {

QDialogButtonBox* makeButtons(QDialog* dialog, const QString& action) {
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
    buttons->button(QDialogButtonBox::Ok)->setText(action);
    QObject::connect(buttons, &QDialogButtonBox::accepted, dialog, &QDialog::accept);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    return buttons;
}

}  // namespace

CompileDialog::CompileDialog(const QStringList& stages, QWidget* parent)
    : QDialog(parent), m_mode(new QComboBox), m_target(new QComboBox), m_stage(new QComboBox), m_freeze(new QCheckBox(tr("Freeze parameters into constants"))),
      m_parity(new QCheckBox(tr("Behave like PyTorch where it is known to be wrong"))) {
    setWindowTitle(tr("Compile"));
    m_mode->addItems({tr("Inference"), tr("Training")});
    m_target->addItems({tr("CPU"), tr("CUDA")});
    m_stage->addItem(tr("All stages"), QString());
    for (const QString& stage : stages) m_stage->addItem(tr("Only %1").arg(stage), stage);
    const CompileOptions last = remembered();
    m_mode->setCurrentIndex(static_cast<int>(last.mode));
    m_target->setCurrentIndex(static_cast<int>(last.target));
    m_freeze->setChecked(last.freeze);
    m_parity->setChecked(last.parity);
    auto* form = new QFormLayout(this);
    form->addRow(tr("&Mode"), m_mode);
    form->addRow(tr("&Device"), m_target);
    form->addRow(tr("&Passes"), m_stage);
    form->addRow(QString(), m_freeze);
    form->addRow(QString(), m_parity);
    form->addRow(makeButtons(this, tr("Compile")));
    // Freezing needs parameters that do not change.
    const auto modeChanged = [this] { m_freeze->setEnabled(m_mode->currentIndex() == 0); };
    connect(m_mode, &QComboBox::currentIndexChanged, this, modeChanged);
    modeChanged();
    connect(this, &QDialog::accepted, this, [this] {
        QSettings settings;
        settings.setValue(QStringLiteral("compile/training"), m_mode->currentIndex() == 1);
        settings.setValue(QStringLiteral("compile/cuda"), m_target->currentIndex() == 1);
        settings.setValue(QStringLiteral("compile/freeze"), m_freeze->isChecked());
        settings.setValue(QStringLiteral("compile/parity"), m_parity->isChecked());
    });
}

CompileOptions CompileDialog::remembered() {
    const QSettings settings;
    CompileOptions options;
    options.mode = settings.value(QStringLiteral("compile/training")).toBool() ? Mode::Training : Mode::Inference;
    options.target = settings.value(QStringLiteral("compile/cuda")).toBool() ? Target::Cuda : Target::Cpu;
    options.freeze = options.mode == Mode::Inference && settings.value(QStringLiteral("compile/freeze")).toBool();
    options.parity = settings.value(QStringLiteral("compile/parity")).toBool();
    return options;
}

CompileOptions CompileDialog::options() const {
    CompileOptions options;
    options.mode = static_cast<Mode>(m_mode->currentIndex());
    options.target = static_cast<Target>(m_target->currentIndex());
    options.freeze = m_freeze->isEnabled() && m_freeze->isChecked();
    options.parity = m_parity->isChecked();
    options.onlyStage = m_stage->currentData().toString().toStdString();
    return options;
}

ExecuteDialog::ExecuteDialog(QWidget* parent)
    : QDialog(parent), m_backend(new QComboBox), m_inputs(new QLineEdit), m_expect(new QLineEdit), m_repeat(new QSpinBox), m_timeout(new QSpinBox) {
    setWindowTitle(tr("Execute"));
    m_backend->addItems({tr("Reference interpreter"), tr("Generated code, CPU"), tr("Generated code, CUDA")});
    m_inputs->setPlaceholderText(tr("the model's samples, else seeded random numbers"));
    m_expect->setPlaceholderText(tr("nothing to compare with"));
    m_repeat->setRange(1, 100000);
    m_timeout->setRange(1, 3600);
    m_timeout->setValue(60);
    m_timeout->setSuffix(tr(" s"));
    auto* form = new QFormLayout(this);
    form->addRow(tr("&Backend"), m_backend);
    form->addRow(tr("&Inputs"), fileField(m_inputs, tr("Input tensors")));
    form->addRow(tr("&Expected outputs"), fileField(m_expect, tr("Expected tensors")));
    form->addRow(tr("&Repeat"), m_repeat);
    form->addRow(tr("Stop &after"), m_timeout);
    form->addRow(makeButtons(this, tr("Execute")));
    resize(520, sizeHint().height());
}

QWidget* ExecuteDialog::fileField(QLineEdit* field, const QString& title) {
    auto* box = new QWidget;
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    auto* choose = new QToolButton;
    choose->setText(QStringLiteral("…"));
    choose->setAccessibleName(title);
    connect(choose, &QToolButton::clicked, this, [this, field, title] {
        const QString path = QFileDialog::getOpenFileName(this, title, field->text(), tr("Safetensors (*.safetensors);;All files (*)"));
        if (!path.isEmpty()) field->setText(path);
    });
    row->addWidget(field, 1);
    row->addWidget(choose);
    box->setFocusProxy(field);
    return box;
}

RunOptions ExecuteDialog::options() const {
    RunOptions options;
    options.backend = static_cast<Backend>(m_backend->currentIndex());
    options.inputsFile = m_inputs->text().trimmed().toStdString();
    options.expectFile = m_expect->text().trimmed().toStdString();
    options.repeat = m_repeat->value();
    options.timeoutSeconds = m_timeout->value();
    return options;
}

BisectDialog::BisectDialog(QWidget* parent) : QDialog(parent), m_check(new QComboBox), m_tolerance(new QLineEdit(QStringLiteral("1e-4"))), m_inputs(new QLineEdit), m_command(new QLineEdit) {
    setWindowTitle(tr("Find the rewrite that broke the graph"));
    m_check->addItems({tr("Other numbers than the graph as opened"), tr("A new NaN or infinity"), tr("My command fails")});
    m_tolerance->setValidator(new QDoubleValidator(0, 1e6, 12, m_tolerance));
    m_tolerance->setToolTip(tr("Largest error that is good, as a share of the largest expected value"));
    m_inputs->setPlaceholderText(tr("the model's samples, else seeded random numbers"));
    m_command->setPlaceholderText(tr("python check.py {}"));
    m_command->setToolTip(tr("{} stands for the graph as a Python file that runs in PyTorch; another exit status than 0 is bad"));
    auto* form = new QFormLayout(this);
    form->addRow(tr("&Bad is"), m_check);
    form->addRow(tr("&Tolerance"), m_tolerance);
    form->addRow(tr("&Inputs"), m_inputs);
    form->addRow(tr("&Command"), m_command);
    QDialogButtonBox* buttons = makeButtons(this, tr("Find"));
    form->addRow(buttons);
    const auto changed = [this, buttons] {
        const auto check = static_cast<BisectCheck>(m_check->currentIndex());
        m_tolerance->setEnabled(check == BisectCheck::Numbers);
        m_inputs->setEnabled(check != BisectCheck::Command);
        m_command->setEnabled(check == BisectCheck::Command);
        buttons->button(QDialogButtonBox::Ok)->setEnabled((check != BisectCheck::Command || !m_command->text().isEmpty()) && m_tolerance->hasAcceptableInput());
    };
    connect(m_check, &QComboBox::currentIndexChanged, this, changed);
    connect(m_command, &QLineEdit::textChanged, this, changed);
    connect(m_tolerance, &QLineEdit::textChanged, this, changed);
    changed();
}

BisectOptions BisectDialog::options() const {
    BisectOptions options;
    options.check = static_cast<BisectCheck>(m_check->currentIndex());
    options.tolerance = QLocale().toDouble(m_tolerance->text());
    options.inputsFile = m_inputs->text().toStdString();
    options.command = m_command->text().toStdString();
    return options;
}

}  // namespace cutaway::ui
