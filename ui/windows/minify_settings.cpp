#include "ui/windows/minify_settings.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

constexpr int64_t kMebibyte = 1024 * 1024;

QSpinBox* makeNumber(int least, int most, int value, const QString& whenLeast, const QString& unit) {
    auto* number = new QSpinBox;
    number->setRange(least, most);
    number->setValue(value);
    number->setSpecialValueText(whenLeast);
    number->setSuffix(unit);
    return number;
}

}  // namespace

MinifySettings::MinifySettings(QWidget* parent)
    : QWidget(parent),
      m_more(new QToolButton),
      m_fields(new QWidget),
      m_graph(new QComboBox),
      m_tolerance(new QLineEdit),
      m_match(new QLineEdit),
      m_inputs(new QLineEdit),
      m_seconds(makeNumber(1, 86400, 60, {}, tr(" s"))),
      m_megabytes(makeNumber(0, 1 << 24, 0, tr("All free memory"), tr(" MiB"))),
      m_repeats(makeNumber(1, 1000, 1, {}, {})),
      m_jobs(makeNumber(0, 1024, 0, tr("One per core"), {})),
      m_strategies(new QListWidget) {
    m_more->setText(tr("F&urther settings"));
    m_more->setCheckable(true);
    m_more->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_more->setArrowType(Qt::RightArrow);
    m_more->setAutoRaise(true);
    m_more->setFocusPolicy(Qt::StrongFocus);
    auto* rows = new QFormLayout(m_fields);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setRowWrapPolicy(QFormLayout::WrapLongRows);
    addFields(*rows);
    addStrategies(*rows);
    m_fields->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_more);
    column->addWidget(m_fields);
    connect(m_more, &QToolButton::toggled, this, [this](bool shown) {
        m_more->setArrowType(shown ? Qt::DownArrow : Qt::RightArrow);
        m_fields->setVisible(shown);
    });
}

void MinifySettings::addFields(QFormLayout& rows) {
    m_graph->addItem(tr("As opened"));
    m_graph->addItem(tr("At the step shown"));
    m_graph->setToolTip(tr("For a graph inside a run, only its stage and later ones are tried"));
    m_tolerance->setPlaceholderText(QString::number(MinifyOptions().tolerance));
    m_tolerance->setToolTip(tr("Largest difference that still counts as equal"));
    m_match->setPlaceholderText(tr("Its exit status decides"));
    m_match->setToolTip(tr("The command has failed if its output holds this text"));
    m_inputs->setPlaceholderText(tr("The model's samples, or random ones"));
    m_repeats->setToolTip(tr("A graph fails if any of its trials does (for flaky failures)"));
    m_jobs->setToolTip(tr("Affects speed only"));
    auto* browse = new QPushButton(tr("Choose…"));
    browse->setAutoDefault(false);
    browse->setAccessibleName(tr("Choose a file of inputs"));
    connect(browse, &QPushButton::clicked, this, &MinifySettings::chooseInputs);
    auto* inputs = new QHBoxLayout;
    inputs->addWidget(m_inputs, 1);
    inputs->addWidget(browse);
    const auto add = [&](const QString& text, QWidget* field) { rows.addRow(text, field); };
    add(tr("G&raph"), m_graph);
    add(tr("Tolerance"), m_tolerance);
    add(tr("Te&xt in its output"), m_match);
    auto* label = new QLabel(tr("Inputs"));
    label->setBuddy(m_inputs);
    rows.addRow(label, inputs);
    add(tr("Time of a trial, at most"), m_seconds);
    add(tr("Memory of a trial, at most"), m_megabytes);
    add(tr("Trials per graph"), m_repeats);
    add(tr("Trials at once"), m_jobs);
}

void MinifySettings::addStrategies(QFormLayout& rows) {
    for (const auto& [name, sentence] : minifyStrategies()) {
        auto* item = new QListWidgetItem(QString::fromStdString(name), m_strategies);
        item->setToolTip(QString::fromStdString(sentence));
        item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
        item->setCheckState(Qt::Checked);
    }
    m_strategies->setMaximumHeight(m_strategies->sizeHintForRow(0) * 5 + 2 * m_strategies->frameWidth());
    m_strategies->setToolTip(tr("Strategies, in this order"));
    rows.addRow(tr("&What is tried"), m_strategies);
}

void MinifySettings::chooseInputs() {
    const QString file = QFileDialog::getOpenFileName(this, tr("Inputs of the trials"), m_inputs->text(),
                                                      tr("Tensors (*.safetensors);;All files (*)"));
    if (!file.isEmpty()) m_inputs->setText(file);
}

void MinifySettings::follow(MinifyCheck check) {
    m_tolerance->setEnabled(check == MinifyCheck::Numbers);
    m_match->setEnabled(check == MinifyCheck::Command);
    m_inputs->setEnabled(check != MinifyCheck::Command);
}

QString MinifySettings::problem() const {
    if (!m_tolerance->isEnabled() || m_tolerance->text().trimmed().isEmpty()) return {};
    if (typedNumber(m_tolerance->text())) return {};
    return tr("The tolerance is a number that is 0 or more, not '%1'.").arg(m_tolerance->text().trimmed());
}

void MinifySettings::fill(MinifyOptions& options, const std::optional<Place>& shown) const {
    if (m_graph->currentIndex() > 0) options.place = shown;
    if (m_tolerance->isEnabled()) options.tolerance = typedNumber(m_tolerance->text()).value_or(options.tolerance);
    if (m_match->isEnabled()) options.match = m_match->text().toStdString();
    if (m_inputs->isEnabled()) options.inputsFile = m_inputs->text().trimmed().toStdString();
    options.timeoutSeconds = m_seconds->value();
    options.memoryBytes = m_megabytes->value() * kMebibyte;
    options.repeats = m_repeats->value();
    options.jobs = m_jobs->value();
    for (int i = 0; i < m_strategies->count(); ++i)
        if (const QListWidgetItem* item = m_strategies->item(i); item->checkState() != Qt::Checked)
            options.without.push_back(item->text().toStdString());
}

}  // namespace cutaway::ui
