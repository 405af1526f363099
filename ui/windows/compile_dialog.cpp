#include "ui/windows/compile_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "cutaway/settings.h"
#include "ui/session/kept_requests.h"
#include "ui/windows/request_form.h"
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

}  // namespace

CompileDialog::CompileDialog(Passes passes, const CompileRequest& from, QWidget* parent)
    : QDialog(parent),
      m_passesOf(std::move(passes)),
      m_form(new RequestForm(from, QStringLiteral("gpr"))),  // of the tabs
      m_passes(new QListWidget),
      m_settings(new QLineEdit),
      m_problem(wrapped({})),
      m_options(from) {
    setWindowTitle(tr("Compile"));
    auto* tabs = new QTabWidget;
    tabs->addTab(m_form, tr("&General"));
    tabs->addTab(makePasses(from), tr("&Passes"));
    std::vector<PassInfo> all;
    for (const CompileRequest& kind : kindsOfRun())
        for (PassInfo& pass : m_passesOf(kind)) all.push_back(std::move(pass));
    m_rules = new RulesPage(all, from);
    tabs->addTab(m_rules, tr("&Rules"));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Compile"));
    QPushButton* usual = buttons->addButton(tr("Use as &Default"), QDialogButtonBox::ActionRole);
    usual->setToolTip(tr("Compile (Ctrl+B) then takes these options for all models that have none of their own."));
    connect(usual, &QPushButton::clicked, this, &CompileDialog::makeUsual);
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

void CompileDialog::markRelease(Release release) {
    m_form->mark("pytorch", releaseName(release), tr("%1 (this file's)"));
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
    m_form->choose("only", from.onlyStage);
    connect(m_form, &RequestForm::changed, this, [this](const QString& option) {
        if (option == QStringLiteral("mode") || option == QStringLiteral("freeze")) listPasses();
    });
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
    const auto found = m_ticks.find(QString::fromStdString(pass.name));
    return found != m_ticks.end() ? found->second : !pass.optional;
}

CompileRequest CompileDialog::kindOfRun() const {
    const std::vector<std::string> words = m_form->words();
    CompileRequest kind;
    kind.mode = m_form->mode();
    kind.freeze = std::find(words.begin(), words.end(), "--freeze") != words.end();
    return kind;
}

/// The passes and stages of the chosen mode; what was chosen in another one is kept for when it comes back.
void CompileDialog::listPasses() {
    m_listed = m_passesOf(kindOfRun());
    QStringList stages;
    const QSignalBlocker quiet(m_passes);
    m_passes->clear();
    for (const PassInfo& pass : m_listed) {
        if (const QString name = QString::fromStdString(pass.stage); !stages.contains(name)) stages << name;
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
    m_form->offer("only", stages);
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

QString CompileDialog::collect() {
    auto asked = parseRequest(m_form->words());
    if (!asked) return QString::fromStdString(asked.error().text());
    CompileRequest options = *std::move(asked);
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
            std::find_if(m_listed.begin(), m_listed.end(), [&](const PassInfo& info) { return info.name == name; });
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

/// Whether what was entered is a request; else says why not.
bool CompileDialog::check() {
    const QString problem = collect();
    m_problem->setText(QStringLiteral("✗ ") + problem);
    m_problem->setVisible(!problem.isEmpty());
    return problem.isEmpty();
}

void CompileDialog::makeUsual() {
    if (!check()) return;
    setUsualRequest(m_options);
    const QString words = optionWords(usualRequest()).join(QStringLiteral(", "));
    m_problem->setText(words.isEmpty() ? tr("Models are compiled without options by default.")
                                       : tr("Default for models without options of their own: %1.").arg(words));
    m_problem->show();
}

void CompileDialog::accept() {
    if (!check()) return;
    m_rules->remember();
    QDialog::accept();
}

}  // namespace cutaway::ui
