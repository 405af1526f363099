#include "ui/windows/compile_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "cutaway/settings.h"
#include "ui/windows/rules_page.h"

namespace cutaway::ui {
namespace {

QLabel* wrapped(const QString& text) {
    auto* label = new QLabel(text);
    label->setWordWrap(true);
    return label;
}

QStringList wordsOf(const QLineEdit* field) {
    static const QRegularExpression gap(QStringLiteral("[\\s;]+"));
    return field->text().split(gap, Qt::SkipEmptyParts);
}

/// What the table of settings says of an option of the request.
const Setting& optionNamed(std::string_view key) {
    for (const Setting& setting : settings())
        if (setting.belongsTo(kRequest) && setting.key == key) return setting;
    qFatal("the request has no such option");
}
QString textOf(std::string_view utf8) { return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size())); }
QString sentenceOf(std::string_view key) { return textOf(optionNamed(key).what); }

}  // namespace

CompileDialog::CompileDialog(Passes passes, const CompileRequest& from, QWidget* parent)
    : QDialog(parent),
      m_passesOf(std::move(passes)),
      m_mode(new QComboBox),
      m_stage(new QComboBox),
      m_freeze(new QCheckBox(tr("&Freeze: parameters become constants"))),
      m_parity(new QCheckBox(tr("Behave like PyTorch where it is known to be wrong"))),
      m_allStages(new QCheckBox(tr("Run again what PyTorch ran before it recorded the graph"))),
      m_fuel(new QSpinBox),
      m_budget(new QDoubleSpinBox),
      m_solver(new QComboBox),
      m_gradients(new QLineEdit),
      m_passes(new QListWidget),
      m_settings(new QLineEdit),
      m_problem(wrapped({})),
      m_options(from) {
    setWindowTitle(tr("Compile"));
    auto* tabs = new QTabWidget;
    tabs->addTab(makeGeneral(from), tr("&General"));
    tabs->addTab(makePasses(from), tr("&Passes"));
    std::vector<PassInfo> all;
    for (const CompileRequest& kind : kindsOfRun())
        for (PassInfo& pass : m_passesOf(kind)) all.push_back(std::move(pass));
    m_rules = new RulesPage(all, from);
    tabs->addTab(m_rules, tr("&Rules"));
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
    m_mode->addItems({tr("Inference"), tr("Training"), tr("Forward mode (jvp)")});
    m_mode->setCurrentIndex(static_cast<int>(from.mode));
    m_mode->setToolTip(sentenceOf("mode"));
    m_stage->setToolTip(sentenceOf("only"));
    m_freeze->setChecked(from.freeze);
    m_freeze->setObjectName(QStringLiteral("freeze"));
    m_freeze->setToolTip(sentenceOf("freeze"));
    m_parity->setChecked(from.parity);
    m_parity->setToolTip(sentenceOf("parity"));
    m_allStages->setChecked(from.allStages);
    m_allStages->setToolTip(sentenceOf("all-stages"));
    m_fuel->setRange(-1, 100000000);
    m_fuel->setSpecialValueText(tr("no limit"));
    m_fuel->setValue(from.fuel ? static_cast<int>(*from.fuel) : -1);
    m_fuel->setToolTip(sentenceOf("fuel"));
    auto* page = new QWidget;
    auto* form = new QFormLayout(page);
    form->addRow(tr("&Mode"), m_mode);
    form->addRow(tr("&Stages"), m_stage);
    form->addRow(tr("Stop &after rewrite"), m_fuel);
    form->addRow(QString(), m_freeze);
    form->addRow(QString(), m_parity);
    form->addRow(QString(), m_allStages);
    addTraining(*form, from);
    connect(m_mode, &QComboBox::currentIndexChanged, this, &CompileDialog::listPasses);
    connect(m_freeze, &QCheckBox::toggled, this, &CompileDialog::listPasses);
    return page;
}

void CompileDialog::addTraining(QFormLayout& form, const CompileRequest& from) {
    m_budget->setRange(0, 1);
    m_budget->setDecimals(3);
    m_budget->setSingleStep(0.05);
    m_budget->setValue(from.memoryBudget);
    m_budget->setObjectName(QStringLiteral("memoryBudget"));
    m_budget->setToolTip(sentenceOf("memory-budget"));
    m_solver->addItems(textOf(optionNamed("solver").choices).split(QChar(' ')));
    m_solver->setCurrentText(QString::fromStdString(from.solver));
    m_solver->setObjectName(QStringLiteral("solver"));
    m_solver->setToolTip(sentenceOf("solver"));
    QStringList names;
    for (const std::string& name : from.gradients) names << QString::fromStdString(name);
    m_gradients->setText(names.join(QChar(' ')));
    m_gradients->setPlaceholderText(tr("parameters only; names of inputs, separated by blanks"));
    m_gradients->setObjectName(QStringLiteral("gradients"));
    m_gradients->setToolTip(sentenceOf("grad"));
    form.addRow(tr("Memory &budget"), m_budget);
    form.addRow(tr("So&lver"), m_solver);
    form.addRow(tr("Gradients of &inputs"), m_gradients);
    const auto onlyWanted = [this, &form] {
        const auto mode = static_cast<Mode>(m_mode->currentIndex());
        for (QWidget* field : std::initializer_list<QWidget*>{m_budget, m_solver})
            form.setRowVisible(field, mode == Mode::Training);
        form.setRowVisible(m_gradients, mode != Mode::Inference);  // of forward mode, too
        form.setRowVisible(m_freeze, mode == Mode::Inference);
    };
    connect(m_mode, &QComboBox::currentIndexChanged, this, onlyWanted);
    onlyWanted();
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

CompileRequest CompileDialog::kindOfRun() const {
    CompileRequest kind;
    kind.mode = static_cast<Mode>(m_mode->currentIndex());
    kind.freeze = kind.mode == Mode::Inference && m_freeze->isChecked();
    return kind;
}

/// The passes and stages of the chosen mode; what was chosen in another one is kept for when it comes back.
void CompileDialog::listPasses() {
    m_listed = m_passesOf(kindOfRun());
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

void CompileDialog::addRuleFile(const QString& path, bool used) { m_rules->addFile(path, used); }

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
    const std::string mode = settings.value(QStringLiteral("compile/mode")).toString().toStdString();
    options.mode = modeOf(mode).value_or(Mode::Inference);
    options.parity = settings.value(QStringLiteral("compile/parity")).toBool();
    options.freeze = options.mode == Mode::Inference && settings.value(QStringLiteral("compile/freeze")).toBool();
    return options;
}

QString CompileDialog::collect() {
    CompileRequest options = kindOfRun();
    options.parity = m_parity->isChecked();
    options.allStages = m_allStages->isChecked();
    options.onlyStage = m_stage->currentData().toString().toStdString();
    if (m_fuel->value() >= 0) options.fuel = m_fuel->value();
    if (options.mode == Mode::Training) {
        options.memoryBudget = m_budget->value();
        options.solver = m_solver->currentText().toStdString();
    }
    if (options.mode != Mode::Inference)
        for (const QString& name : wordsOf(m_gradients)) options.gradients.push_back(name.toStdString());
    if (QString problem = m_rules->addTo(options); !problem.isEmpty()) return problem;
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
    for (const OptionalPass& pass : options.enabledPasses)
        if (const auto known = checkSettings(pass); !known) return QString::fromStdString(known.error().text());
    if (const auto fits = checkRequest(options); !fits) return QString::fromStdString(fits.error().text());
    m_options = std::move(options);
    return {};
}

void CompileDialog::accept() {
    const QString problem = collect();
    m_problem->setText(QStringLiteral("✗ ") + problem);
    m_problem->setVisible(!problem.isEmpty());
    if (!problem.isEmpty()) return;
    QSettings settings;
    const std::string_view mode = modeName(m_options.mode);
    settings.setValue(QStringLiteral("compile/mode"),
                      QString::fromUtf8(mode.data(), static_cast<qsizetype>(mode.size())));
    settings.setValue(QStringLiteral("compile/parity"), m_options.parity);
    settings.setValue(QStringLiteral("compile/freeze"), m_options.freeze);
    m_rules->remember();
    QDialog::accept();
}

}  // namespace cutaway::ui
