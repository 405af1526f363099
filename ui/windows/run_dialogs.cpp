#include "ui/windows/run_dialogs.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QToolButton>
#include <algorithm>

#include "cutaway/backends.h"
#include "ui/models/units.h"

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

QString tensorsBeside(const QString& model, const QString& what) {
    const QFileInfo file(model);
    const QDir folder = file.isDir() ? QDir(model) : file.dir();
    for (const QString& name : {file.completeBaseName() + QChar('.') + what, what}) {
        const QString path = folder.filePath(name + QStringLiteral(".safetensors"));
        if (QFileInfo(path).isFile()) return path;
    }
    return {};
}

namespace {

struct TensorFiles {
    QString inputs, expected;
};
/// What the model was executed with last, else what lies beside it.
TensorFiles tensorFiles(const QString& model) {
    if (model.isEmpty()) return {};
    const QSettings settings;
    if (settings.value(QStringLiteral("execute/model")).toString() == model)
        return {settings.value(QStringLiteral("execute/inputs")).toString(),
                settings.value(QStringLiteral("execute/expected")).toString()};
    return {tensorsBeside(model, QStringLiteral("inputs")), tensorsBeside(model, QStringLiteral("expected"))};
}

}  // namespace

RunOptions timingOptions(Target target, const QString& model) {
    constexpr int kRepeats = 100;
    constexpr double kBudgetSeconds = 3, kMostSeconds = 3600;  // the latter for a single run; it can be stopped
    const TensorFiles files = tensorFiles(model);
    RunOptions options;
    options.backend = compiledBackend(target);
    options.repeat = kRepeats;
    options.budgetSeconds = kBudgetSeconds;
    options.timeoutSeconds = kMostSeconds;
    options.inputsFile = files.inputs.toStdString();
    options.expectFile = files.expected.toStdString();
    return options;
}

ExecuteDialog::ExecuteDialog(const QString& model, const QString& notCompiled, bool training, Target target,
                             QWidget* parent)
    : QDialog(parent),
      m_model(model),
      m_backend(new QComboBox),
      m_inputs(new QLineEdit),
      m_expect(new QLineEdit),
      m_repeat(new QSpinBox),
      m_timeout(new QSpinBox) {
    setWindowTitle(tr("Execute"));
    m_backend->addItem(tr("Reference interpreter"), static_cast<int>(Backend::Reference));
    if (notCompiled.isEmpty())
        m_backend->addItem(target == Target::Cuda ? tr("Generated code, GPU") : tr("Generated code, CPU"),
                           static_cast<int>(compiledBackend(target)));
    m_inputs->setPlaceholderText(tr("the model's samples, else seeded random numbers"));
    m_expect->setPlaceholderText(tr("nothing to compare with"));
    m_repeat->setRange(1, 100000);
    m_timeout->setRange(1, 3600);
    m_timeout->setSuffix(tr(" s"));
    auto* form = new QFormLayout(this);
    form->addRow(tr("&Backend"), m_backend);
    if (!notCompiled.isEmpty()) {
        auto* why = new QLabel(tr("Generated code is not available: %1.").arg(notCompiled));
        why->setObjectName(QStringLiteral("notCompiled"));
        why->setWordWrap(true);
        form->addRow(why);
    }
    form->addRow(tr("&Inputs"), fileField(m_inputs, tr("Input tensors")));
    form->addRow(tr("&Expected outputs"), fileField(m_expect, tr("Expected tensors")));
    if (training) {
        m_gradients = new QLineEdit;
        m_expectGradients = new QLineEdit;
        m_gradients->setObjectName(QStringLiteral("gradients"));
        m_gradients->setPlaceholderText(tr("not written"));
        m_expectGradients->setObjectName(QStringLiteral("expectGradients"));
        m_expectGradients->setPlaceholderText(tr("nothing to compare with"));
        form->addRow(tr("&Write gradients to"),
                     fileField(m_gradients, tr("File for loss, outputs and gradients"), true));
        form->addRow(tr("Expected &gradients"), fileField(m_expectGradients, tr("Expected gradients")));
    }
    form->addRow(tr("&Repeat"), m_repeat);
    form->addRow(tr("Time &limit"), m_timeout);
    form->addRow(makeButtons(this, tr("Execute")));
    const QSettings settings;
    m_backend->setCurrentIndex(std::max(0, m_backend->findData(settings.value(QStringLiteral("execute/backend")))));
    m_repeat->setValue(settings.value(QStringLiteral("execute/repeat"), 1).toInt());
    m_timeout->setValue(settings.value(QStringLiteral("execute/timeout"), 60).toInt());
    const TensorFiles files = tensorFiles(model);
    m_inputs->setText(files.inputs);
    m_expect->setText(files.expected);
    resize(620, sizeHint().height());
}

void ExecuteDialog::accept() {
    QSettings settings;
    settings.setValue(QStringLiteral("execute/backend"), m_backend->currentData());
    settings.setValue(QStringLiteral("execute/repeat"), m_repeat->value());
    settings.setValue(QStringLiteral("execute/timeout"), m_timeout->value());
    settings.setValue(QStringLiteral("execute/model"), m_model);
    settings.setValue(QStringLiteral("execute/inputs"), m_inputs->text().trimmed());
    settings.setValue(QStringLiteral("execute/expected"), m_expect->text().trimmed());
    QDialog::accept();
}

QWidget* ExecuteDialog::fileField(QLineEdit* field, const QString& title, bool written) {
    auto* box = new QWidget;
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    auto* choose = new QToolButton;
    choose->setText(QStringLiteral("…"));
    choose->setAccessibleName(title);
    connect(choose, &QToolButton::clicked, this, [this, field, title, written] {
        const QString kinds = tr("Safetensors (*.safetensors);;All files (*)");
        const QString path = written ? QFileDialog::getSaveFileName(this, title, field->text(), kinds)
                                     : QFileDialog::getOpenFileName(this, title, field->text(), kinds);
        if (!path.isEmpty()) field->setText(path);
    });
    row->addWidget(field, 1);
    row->addWidget(choose);
    box->setFocusProxy(field);
    return box;
}

RunOptions ExecuteDialog::options() const {
    RunOptions options;
    options.backend = static_cast<Backend>(m_backend->currentData().toInt());
    options.inputsFile = m_inputs->text().trimmed().toStdString();
    options.expectFile = m_expect->text().trimmed().toStdString();
    if (m_gradients) options.gradientsFile = m_gradients->text().trimmed().toStdString();
    if (m_expectGradients) options.expectGradientsFile = m_expectGradients->text().trimmed().toStdString();
    options.repeat = m_repeat->value();
    options.timeoutSeconds = m_timeout->value();
    return options;
}

BisectDialog::BisectDialog(const QString& model, QWidget* parent)
    : QDialog(parent),
      m_check(new QComboBox),
      m_tolerance(new QLineEdit(QStringLiteral("1e-4"))),
      m_inputs(new QLineEdit(tensorFiles(model).inputs)),
      m_command(new QLineEdit) {
    setWindowTitle(tr("Find the rewrite that broke the graph"));
    m_check->addItems({tr("its numbers differ from those of the graph as opened"),
                       tr("it makes a NaN or infinity that the graph as opened does not"), tr("my command fails"),
                       tr("compiling or running it fails, crashes, hangs or takes all memory")});
    m_tolerance->setToolTip(tr("Largest acceptable error, as a share of the largest expected value"));
    m_inputs->setPlaceholderText(tr("the model's samples, else seeded random numbers"));
    m_command->setPlaceholderText(tr("python check.py {}"));
    m_command->setToolTip(tr(
        "{} stands for the graph as a Python file that runs in PyTorch; an exit status other than 0 means that the graph is bad"));
    auto* form = new QFormLayout(this);
    form->addRow(tr("The graph is &bad when"), m_check);
    form->addRow(tr("&Tolerance"), m_tolerance);
    form->addRow(tr("&Inputs"), m_inputs);
    form->addRow(tr("&Command"), m_command);
    auto* problem = new QLabel;
    problem->setObjectName(QStringLiteral("problem"));
    form->addRow(problem);
    QDialogButtonBox* buttons = makeButtons(this, tr("Find"));
    form->addRow(buttons);
    const auto changed = [this, form, problem, buttons] {
        const auto check = static_cast<BisectCheck>(m_check->currentIndex());
        form->setRowVisible(m_tolerance, check == BisectCheck::Numbers);
        form->setRowVisible(m_inputs, check != BisectCheck::Command);
        form->setRowVisible(m_command, check == BisectCheck::Command);
        const bool noCommand = check == BisectCheck::Command && m_command->text().trimmed().isEmpty();
        const bool noTolerance = check == BisectCheck::Numbers && !typedNumber(m_tolerance->text());
        problem->setText(noCommand     ? tr("Enter a command that fails on a bad graph.")
                         : noTolerance ? tr("The tolerance must be a number, 0 or greater.")
                                       : QString());
        form->setRowVisible(problem, noCommand || noTolerance);
        buttons->button(QDialogButtonBox::Ok)->setEnabled(!noCommand && !noTolerance);
        adjustSize();
    };
    connect(m_check, &QComboBox::currentIndexChanged, this, changed);
    connect(m_command, &QLineEdit::textChanged, this, changed);
    connect(m_tolerance, &QLineEdit::textChanged, this, changed);
    changed();
}

BisectOptions BisectDialog::options() const {
    BisectOptions options;
    options.check = static_cast<BisectCheck>(m_check->currentIndex());
    // Only what is asked for: what was typed for another check stays out of this one.
    if (options.check == BisectCheck::Numbers)
        options.tolerance = typedNumber(m_tolerance->text()).value_or(options.tolerance);
    if (options.check != BisectCheck::Command) options.inputsFile = m_inputs->text().trimmed().toStdString();
    else options.command = m_command->text().trimmed().toStdString();
    return options;
}

}  // namespace cutaway::ui
