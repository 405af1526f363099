#include "ui/windows/compile_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "cutaway/files.h"
#include "ui/windows/code_view.h"

namespace cutaway::ui {
namespace {

constexpr int kKnownFiles = 10;
constexpr qint64 kShownBytes = 1 << 20;  // of a file that somebody took for rules

QLabel* wrapped(const QString& text) {
    auto* label = new QLabel(text);
    label->setWordWrap(true);
    return label;
}

QStringList wordsOf(const QLineEdit* field) {
    static const QRegularExpression gap(QStringLiteral("[\\s;]+"));
    return field->text().split(gap, Qt::SkipEmptyParts);
}

}  // namespace

CompileDialog::CompileDialog(const std::vector<StepInfo>& passes, const CompileOptions& from, QWidget* parent)
    : QDialog(parent), m_mode(new QComboBox), m_target(new QComboBox), m_stage(new QComboBox), m_freeze(new QCheckBox(tr("Freeze parameters into constants"))),
      m_parity(new QCheckBox(tr("Behave like PyTorch where it is known to be wrong"))), m_fuel(new QSpinBox), m_passes(new QListWidget), m_files(new QListWidget),
      m_more(new QLineEdit), m_rulesOff(new QLineEdit), m_problem(wrapped({})), m_options(from) {
    setWindowTitle(tr("Compile"));
    auto* tabs = new QTabWidget;
    tabs->addTab(makeGeneral(passes, from), tr("&General"));
    tabs->addTab(makePasses(passes, from), tr("&Passes"));
    tabs->addTab(makeRules(from), tr("&Rules"));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Compile"));
    connect(buttons, &QDialogButtonBox::accepted, this, &CompileDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    m_problem->setObjectName(QStringLiteral("problem"));
    m_problem->hide();
    auto* column = new QVBoxLayout(this);
    column->addWidget(tabs, 1);
    column->addWidget(m_problem);
    column->addWidget(buttons);
    resize(560, 480);
}

QWidget* CompileDialog::makeGeneral(const std::vector<StepInfo>& passes, const CompileOptions& from) {
    m_mode->addItems({tr("Inference"), tr("Training")});
    m_target->addItems({tr("CPU"), tr("CUDA")});
    m_stage->addItem(tr("All stages"), QString());
    for (const StepInfo& pass : passes)
        if (const QString stage = QString::fromStdString(pass.stage); m_stage->findData(stage) < 0) m_stage->addItem(tr("Only %1").arg(stage), stage);
    m_mode->setCurrentIndex(static_cast<int>(from.mode));
    m_target->setCurrentIndex(static_cast<int>(from.target));
    m_stage->setCurrentIndex(std::max(0, m_stage->findData(QString::fromStdString(from.onlyStage))));
    m_freeze->setChecked(from.freeze);
    m_parity->setChecked(from.parity);
    m_fuel->setRange(-1, 100000000);
    m_fuel->setSpecialValueText(tr("no limit"));
    m_fuel->setValue(from.fuel ? static_cast<int>(*from.fuel) : -1);
    m_fuel->setToolTip(tr("Rewrites that the whole run may do; then all passes stop"));
    auto* page = new QWidget;
    auto* form = new QFormLayout(page);
    form->addRow(tr("&Mode"), m_mode);
    form->addRow(tr("&Device"), m_target);
    form->addRow(tr("&Stages"), m_stage);
    form->addRow(tr("Stop &after rewrite"), m_fuel);
    form->addRow(QString(), m_freeze);
    form->addRow(QString(), m_parity);
    // Freezing needs parameters that do not change.
    const auto modeChanged = [this] { m_freeze->setEnabled(m_mode->currentIndex() == 0); };
    connect(m_mode, &QComboBox::currentIndexChanged, this, modeChanged);
    modeChanged();
    return page;
}

QWidget* CompileDialog::makePasses(const std::vector<StepInfo>& passes, const CompileOptions& from) {
    for (const StepInfo& pass : passes) {
        auto* item = new QListWidgetItem(QString::fromStdString(pass.name), m_passes);
        item->setToolTip(QStringLiteral("%1: %2").arg(QString::fromStdString(pass.stage), QString::fromStdString(pass.summary)));
        item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
        const bool off = std::find(from.disabledPasses.begin(), from.disabledPasses.end(), pass.name) != from.disabledPasses.end();
        item->setCheckState(off ? Qt::Unchecked : Qt::Checked);
    }
    for (const PassMove& move : from.moves) replay(move);
    m_moves = from.moves;
    m_passes->setAccessibleName(tr("Passes in running order"));
    m_passes->setCurrentRow(0);
    auto* up = new QPushButton(tr("Move &Up"));
    auto* down = new QPushButton(tr("Move D&own"));
    connect(up, &QPushButton::clicked, this, [this] { movePass(true); });
    connect(down, &QPushButton::clicked, this, [this] { movePass(false); });
    QStringList more;
    for (const OptionalPass& pass : from.enabledPasses) {
        QStringList settings;
        for (const auto& [key, value] : pass.settings) settings << QString::fromStdString(key + ":" + value);
        more << QString::fromStdString(pass.name) + (settings.isEmpty() ? QString() : QStringLiteral("=") + settings.join(','));
    }
    m_more->setText(more.join(' '));
    m_more->setPlaceholderText(tr("optional passes: NAME or NAME=key:value,key:value"));
    m_more->setAccessibleName(tr("Optional passes to run"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->addWidget(wrapped(tr("Uncheck a pass to leave it out. What must stay before what is checked when you compile.")));
    column->addWidget(m_passes, 1);
    auto* row = new QHBoxLayout;
    row->addWidget(up);
    row->addWidget(down);
    row->addStretch();
    column->addLayout(row);
    auto* form = new QFormLayout;
    form->addRow(tr("A&lso run"), m_more);
    column->addLayout(form);
    return page;
}

QWidget* CompileDialog::makeRules(const CompileOptions& from) {
    m_files->setAccessibleName(tr("Files with rules"));
    QStringList off;
    for (const std::string& name : from.disabledPasses) {
        const QString text = QString::fromStdString(name);
        if (m_passes->findItems(text, Qt::MatchExactly).isEmpty()) off << text;
    }
    m_rulesOff->setText(off.join(' '));
    m_rulesOff->setPlaceholderText(tr("RULE or PASS/RULE"));
    for (const QString& path : QSettings().value(QStringLiteral("compile/ruleFiles")).toStringList()) {
        const std::string name = QFileInfo(path).completeBaseName().toStdString();
        addRuleFile(path, std::any_of(from.userRules.begin(), from.userRules.end(), [&](const UserRules& rules) { return rules.name == name; }));
    }
    auto* add = new QPushButton(tr("&Add…"));
    auto* remove = new QPushButton(tr("&Remove"));
    connect(add, &QPushButton::clicked, this, [this] {
        for (const QString& path : QFileDialog::getOpenFileNames(this, tr("Rules"), {}, tr("Rules (*.txt *.rules);;All files (*)"))) addRuleFile(path, true);
    });
    connect(remove, &QPushButton::clicked, this, [this] { delete m_files->takeItem(m_files->currentRow()); });
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->addWidget(wrapped(tr("Rules of your own, in the form that `cutaway-cli rules` prints. Checked files are read again at every compile.")));
    column->addWidget(makeRuleView(), 1);
    auto* row = new QHBoxLayout;
    row->addWidget(add);
    row->addWidget(remove);
    row->addStretch();
    column->addLayout(row);
    auto* form = new QFormLayout;
    form->addRow(tr("Rules switched &off"), m_rulesOff);
    column->addLayout(form);
    return page;
}

/// The files, and below them what is in the current one.
QWidget* CompileDialog::makeRuleView() {
    auto* view = new CodeView(Language::Rules, tr("Rules in the current file"),
                              tr("The rules in the current file are shown here."));
    connect(m_files, &QListWidget::currentItemChanged, view, [view](const QListWidgetItem* item) {
        QFile file(item ? item->text() : QString());
        if (!item)
            view->setCode({});
        else if (!QFileInfo(file).isFile() || !file.open(QIODevice::ReadOnly))
            view->setCode(
                tr("# This file cannot be read. %1").arg(file.errorString()));  // a pipe would wait for its writer
        else
            view->setCode(QString::fromUtf8(file.read(kShownBytes)));
    });
    auto* areas = new QSplitter(Qt::Vertical);
    areas->addWidget(m_files);
    areas->addWidget(view);
    areas->setStretchFactor(1, 2);
    areas->setChildrenCollapsible(false);
    return areas;
}

void CompileDialog::addRuleFile(const QString& path, bool used) {
    auto* item = new QListWidgetItem(path, m_files);
    item->setToolTip(path);
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(used ? Qt::Checked : Qt::Unchecked);
}

void CompileDialog::replay(const PassMove& move) {
    const auto rowOf = [this](const std::string& pass) {
        const auto found = m_passes->findItems(QString::fromStdString(pass), Qt::MatchExactly);
        return found.isEmpty() ? -1 : m_passes->row(found.front());
    };
    const int row = rowOf(move.pass);
    if (row < 0 || rowOf(move.anchor) < 0) return;
    QListWidgetItem* item = m_passes->takeItem(row);
    m_passes->insertItem(rowOf(move.anchor) + (move.before ? 0 : 1), item);
}

void CompileDialog::movePass(bool up) {
    const int row = m_passes->currentRow(), other = row + (up ? -1 : 1);
    if (row < 0 || other < 0 || other >= m_passes->count()) return;
    m_moves.push_back({m_passes->item(row)->text().toStdString(), up, m_passes->item(other)->text().toStdString()});
    replay(m_moves.back());
    m_passes->setCurrentRow(other);
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

QString CompileDialog::collect() {
    CompileOptions options;
    options.mode = static_cast<Mode>(m_mode->currentIndex());
    options.target = static_cast<Target>(m_target->currentIndex());
    options.freeze = m_freeze->isEnabled() && m_freeze->isChecked();
    options.parity = m_parity->isChecked();
    options.onlyStage = m_stage->currentData().toString().toStdString();
    if (m_fuel->value() >= 0) options.fuel = m_fuel->value();
    for (int row = 0; row < m_passes->count(); ++row)
        if (m_passes->item(row)->checkState() == Qt::Unchecked) options.disabledPasses.push_back(m_passes->item(row)->text().toStdString());
    for (const QString& rule : wordsOf(m_rulesOff)) options.disabledPasses.push_back(rule.toStdString());
    options.moves = m_moves;
    for (const QString& text : wordsOf(m_more)) {
        auto pass = parseOptionalPass(text.toStdString());
        if (!pass) return tr("\"%1\" is not NAME or NAME=key:value,key:value (Passes, Also run).").arg(text);
        options.enabledPasses.push_back(std::move(*pass));
    }
    for (int row = 0; row < m_files->count(); ++row) {
        if (m_files->item(row)->checkState() != Qt::Checked) continue;
        const QString path = m_files->item(row)->text();
        auto text = readTextFile(path.toStdString(), kMaxSettingsFile);
        if (!text) return QString::fromStdString(text.error().text());
        options.userRules.push_back({QFileInfo(path).completeBaseName().toStdString(), std::move(*text)});
    }
    m_options = std::move(options);
    return {};
}

void CompileDialog::accept() {
    const QString problem = collect();
    m_problem->setText(QStringLiteral("✗ ") + problem);
    m_problem->setVisible(!problem.isEmpty());
    if (!problem.isEmpty()) return;
    QSettings settings;
    settings.setValue(QStringLiteral("compile/training"), m_options.mode == Mode::Training);
    settings.setValue(QStringLiteral("compile/cuda"), m_options.target == Target::Cuda);
    settings.setValue(QStringLiteral("compile/freeze"), m_freeze->isChecked());
    settings.setValue(QStringLiteral("compile/parity"), m_options.parity);
    QStringList files;
    for (int row = 0; row < std::min(kKnownFiles, m_files->count()); ++row) files << m_files->item(row)->text();
    settings.setValue(QStringLiteral("compile/ruleFiles"), files);
    QDialog::accept();
}

}  // namespace cutaway::ui
