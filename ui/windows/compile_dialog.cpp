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
#include <QSignalBlocker>
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

CompileDialog::CompileDialog(Passes passes, const CompileRequest& from, QWidget* parent)
    : QDialog(parent),
      m_passesOf(std::move(passes)),
      m_mode(new QComboBox),
      m_stage(new QComboBox),
      m_parity(new QCheckBox(tr("Behave like PyTorch where it is known to be wrong"))),
      m_allStages(new QCheckBox(tr("Run again what PyTorch ran before it recorded the graph"))),
      m_fuel(new QSpinBox),
      m_passes(new QListWidget),
      m_files(new QListWidget),
      m_settings(new QLineEdit),
      m_rulesOff(new QLineEdit),
      m_problem(wrapped({})),
      m_options(from) {
    setWindowTitle(tr("Compile"));
    auto* tabs = new QTabWidget;
    tabs->addTab(makeGeneral(from), tr("&General"));
    tabs->addTab(makePasses(from), tr("&Passes"));
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

QWidget* CompileDialog::makeGeneral(const CompileRequest& from) {
    m_mode->setObjectName(QStringLiteral("mode"));
    m_mode->addItems({tr("Inference"), tr("Training")});
    m_mode->setCurrentIndex(static_cast<int>(from.mode));
    m_parity->setChecked(from.parity);
    m_allStages->setChecked(from.allStages);
    m_fuel->setRange(-1, 100000000);
    m_fuel->setSpecialValueText(tr("no limit"));
    m_fuel->setValue(from.fuel ? static_cast<int>(*from.fuel) : -1);
    m_fuel->setToolTip(tr("Rewrites that the whole run may do; then all passes stop"));
    auto* page = new QWidget;
    auto* form = new QFormLayout(page);
    form->addRow(tr("&Mode"), m_mode);
    form->addRow(tr("&Stages"), m_stage);
    form->addRow(tr("Stop &after rewrite"), m_fuel);
    form->addRow(QString(), m_parity);
    form->addRow(QString(), m_allStages);
    connect(m_mode, &QComboBox::currentIndexChanged, this, &CompileDialog::listPasses);
    return page;
}

QWidget* CompileDialog::makePasses(const CompileRequest& from) {
    for (const std::string& name : from.disabledPasses) m_ticks[QString::fromStdString(name)] = false;
    QStringList settings;
    for (const OptionalPass& pass : from.enabledPasses) {
        m_ticks[QString::fromStdString(pass.name)] = true;
        QStringList values;
        for (const auto& [key, value] : pass.settings) values << QString::fromStdString(key + ":" + value);
        if (!values.isEmpty()) settings << QString::fromStdString(pass.name) + QStringLiteral("=") + values.join(',');
    }
    m_moves = from.moves;
    m_passes->setAccessibleName(tr("Passes in running order"));
    connect(m_passes, &QListWidget::itemChanged, this,
            [this](const QListWidgetItem* item) { m_ticks[item->text()] = item->checkState() == Qt::Checked; });
    listPasses();
    m_stage->setCurrentIndex(std::max(0, m_stage->findData(QString::fromStdString(from.onlyStage))));
    auto* up = new QPushButton(tr("Move &Up"));
    auto* down = new QPushButton(tr("Move D&own"));
    connect(up, &QPushButton::clicked, this, [this] { movePass(true); });
    connect(down, &QPushButton::clicked, this, [this] { movePass(false); });
    m_settings->setText(settings.join(' '));
    m_settings->setPlaceholderText(tr("NAME=key:value,key:value"));
    m_settings->setAccessibleName(tr("Settings of optional passes"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->addWidget(wrapped(tr(
        "Ticked passes run, from top to bottom. Those in italics are optional. Some passes must run before others: an order that cannot work is refused when you compile.")));
    column->addWidget(m_passes, 1);
    auto* row = new QHBoxLayout;
    row->addWidget(up);
    row->addWidget(down);
    row->addStretch();
    column->addLayout(row);
    auto* form = new QFormLayout;
    form->addRow(tr("Pass se&ttings"), m_settings);
    column->addLayout(form);
    return page;
}

bool CompileDialog::isTicked(const PassInfo& pass) const {
    const auto known = m_ticks.find(QString::fromStdString(pass.name));
    return known != m_ticks.end() ? known->second : !pass.optional;
}

/// The passes and stages of the chosen mode; what was chosen in another one is kept for when it comes back.
void CompileDialog::listPasses() {
    m_listed = m_passesOf(static_cast<Mode>(m_mode->currentIndex()));
    const QVariant stage = m_stage->currentData();
    m_stage->clear();
    m_stage->addItem(tr("All stages"), QString());
    const QSignalBlocker quiet(m_passes);
    m_passes->clear();
    for (const PassInfo& pass : m_listed) {
        if (const QString name = QString::fromStdString(pass.stage); m_stage->findData(name) < 0)
            m_stage->addItem(tr("Only %1").arg(name), name);
        auto* item = new QListWidgetItem(QString::fromStdString(pass.name), m_passes);
        item->setToolTip((pass.optional ? tr("%1, optional: %2") : QStringLiteral("%1: %2"))
                             .arg(QString::fromStdString(pass.stage), QString::fromStdString(pass.summary)));
        item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
        item->setCheckState(isTicked(pass) ? Qt::Checked : Qt::Unchecked);
        QFont font = m_passes->font();
        font.setItalic(pass.optional);
        item->setFont(font);
    }
    for (const PassMove& move : m_moves) replay(move);
    m_passes->setCurrentRow(0);
    m_stage->setCurrentIndex(std::max(0, m_stage->findData(stage)));
}

QWidget* CompileDialog::makeRules(const CompileRequest& from) {
    m_files->setAccessibleName(tr("Files with rules"));
    QStringList off;
    std::vector<PassInfo> all = m_passesOf(Mode::Inference);
    for (PassInfo& pass : m_passesOf(Mode::Training)) all.push_back(std::move(pass));
    for (const std::string& name : from.disabledPasses)
        if (std::none_of(all.begin(), all.end(), [&](const PassInfo& pass) { return pass.name == name; }))
            off << QString::fromStdString(name);
    m_rulesOff->setText(off.join(' '));
    m_rulesOff->setPlaceholderText(tr("RULE or PASS/RULE"));
    for (const QString& path : QSettings().value(QStringLiteral("compile/ruleFiles")).toStringList()) {
        const std::string name = QFileInfo(path).completeBaseName().toStdString();
        addRuleFile(path, std::any_of(from.userRules.begin(), from.userRules.end(),
                                      [&](const UserRules& rules) { return rules.name == name; }));
    }
    auto* add = new QPushButton(tr("&Add…"));
    auto* remove = new QPushButton(tr("&Remove"));
    connect(add, &QPushButton::clicked, this, [this] {
        for (const QString& path :
             QFileDialog::getOpenFileNames(this, tr("Rules"), {}, tr("Rules (*.txt *.rules);;All files (*)")))
            addRuleFile(path, true);
    });
    connect(remove, &QPushButton::clicked, this, [this] { delete m_files->takeItem(m_files->currentRow()); });
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->addWidget(wrapped(tr(
        "Rules of your own, in the form that `cutaway-cli rules` prints. Checked files are read again at every compile.")));
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
        if (!item) view->setCode({});
        else if (!QFileInfo(file).isFile() || !file.open(QIODevice::ReadOnly))
            view->setCode(
                tr("# This file cannot be read. %1").arg(file.errorString()));  // a pipe would wait for its writer
        else view->setCode(QString::fromUtf8(file.read(kShownBytes)));
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

CompileRequest CompileDialog::remembered() {
    const QSettings settings;
    CompileRequest options;
    options.mode = settings.value(QStringLiteral("compile/training")).toBool() ? Mode::Training : Mode::Inference;
    options.parity = settings.value(QStringLiteral("compile/parity")).toBool();
    return options;
}

QString CompileDialog::collect() {
    CompileRequest options;
    options.mode = static_cast<Mode>(m_mode->currentIndex());
    options.parity = m_parity->isChecked();
    options.allStages = m_allStages->isChecked();
    options.onlyStage = m_stage->currentData().toString().toStdString();
    if (m_fuel->value() >= 0) options.fuel = m_fuel->value();
    for (const QString& rule : wordsOf(m_rulesOff)) options.disabledPasses.push_back(rule.toStdString());
    options.moves = m_moves;
    for (const QString& text : wordsOf(m_settings)) {
        auto pass = parseOptionalPass(text.toStdString());
        if (!pass) return tr("\"%1\" is not NAME=key:value,key:value (Passes, Pass settings).").arg(text);
        options.enabledPasses.push_back(std::move(*pass));
    }
    for (int row = 0; row < m_passes->count(); ++row) {
        const std::string name = m_passes->item(row)->text().toStdString();
        const bool ticked = m_passes->item(row)->checkState() == Qt::Checked;
        const auto pass =
            std::find_if(m_listed.begin(), m_listed.end(), [&](const PassInfo& known) { return known.name == name; });
        if (!pass->optional && !ticked) options.disabledPasses.push_back(name);
        if (pass->optional && ticked && !options.enabled(name)) options.enabledPasses.push_back({name, {}});
        if (pass->optional && !ticked && options.enabled(name))
            return tr("Tick %1 in the list to run it with these settings (Passes).").arg(m_passes->item(row)->text());
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
    settings.setValue(QStringLiteral("compile/parity"), m_options.parity);
    QStringList files;
    for (int row = 0; row < std::min(kKnownFiles, m_files->count()); ++row) files << m_files->item(row)->text();
    settings.setValue(QStringLiteral("compile/ruleFiles"), files);
    QDialog::accept();
}

}  // namespace cutaway::ui
