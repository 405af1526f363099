#include "ui/windows/plugins_window.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/session/ask_queue.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

PluginsWindow::PluginsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_model(*new PluginsModel(this)),
      m_table(makeList(m_model, PluginsModel::SortRole, tr("Installed plugins"))),
      m_state(new QLabel),
      m_details(new QPlainTextEdit),
      m_refresh(new QPushButton(tr("Refresh"))),
      m_check(new QPushButton(tr("Check"))),
      m_color(new QPushButton(tr("Colour the Graph"))),
      m_controller(parts.controller),
      m_selection(parts.selection) {
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_details->setReadOnly(true);
    m_details->setTabChangesFocus(true);
    m_details->setAccessibleName(tr("What the plugin gives, and its faults"));
    m_refresh->setToolTip(tr("Look into the folders again"));
    m_color->setToolTip(
        tr("What the plugin says of the nodes of the graph on show; again: the next colouring, or none"));
    m_check->setToolTip(tr("Hold the plugin to the contract, on graphs of every kind"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    for (QPushButton* button : {m_refresh, m_check, m_color}) row->addWidget(button);
    row->addStretch(1);
    column->addLayout(row);
    column->addWidget(m_state);
    auto* areas = new QSplitter(Qt::Vertical);
    areas->addWidget(m_table);
    areas->addWidget(m_details);
    areas->setChildrenCollapsible(false);
    areas->setStretchFactor(0, 3);
    areas->setStretchFactor(1, 2);
    column->addWidget(areas, 1);
    setWidget(page);
    setFocusProxy(m_table);

    connect(m_refresh, &QPushButton::clicked, this, [this] {
        m_said.clear();
        refresh();
    });
    connect(m_check, &QPushButton::clicked, this, &PluginsWindow::checkChosen);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
        m_said.clear();
        follow();
    });
    connect(m_color, &QPushButton::clicked, this, &PluginsWindow::colorGraph);
    connect(&m_controller.coloring(), &GraphColoring::said, this, [this](const QString& sentence) {
        m_said = sentence;
        follow();
    });
    connect(&m_controller.coloring(), &GraphColoring::changed, this, [this] {
        if (!m_controller.coloring().marks()) m_colored.clear();
    });
    connect(&m_selection, &Selection::placeChanged, this, &PluginsWindow::follow);
    connect(&m_model, &PluginsModel::switched, this, [this](const QString& name, bool on) {
        refresh([name = name.toStdString(), on] { return switchPlugin(name, on); });
    });
    follow();
}

void PluginsWindow::showEvent(QShowEvent* event) {
    Window::showEvent(event);
    refresh();
}

void PluginsWindow::refresh(std::function<Result<void>()> first) {
    askQueue<std::vector<PluginInfo>>(
        this, m_lists, "plugins", m_listing,
        [first = std::move(first)](const Progress&) -> Result<std::vector<PluginInfo>> {
            if (first) CT_TRY_VOID(first());
            return installedPlugins();
        },
        [this](Result<std::vector<PluginInfo>> plugins) {
            if (!plugins) m_said = QString::fromStdString(plugins.error().text());
            const QString said = m_said;  // which another selection would take away
            const PluginInfo* before = chosen();
            const std::string file = before ? before->file : std::string();
            if (plugins) m_model.setPlugins(std::move(*plugins));
            fitColumns(*m_table);
            if (const int row = m_model.rowOf(file); row >= 0) {
                const auto* sorted = static_cast<const QSortFilterProxyModel*>(m_table->model());
                m_table->selectRow(sorted->mapFromSource(m_model.index(row, 0)).row());
            }
            m_said = said;
            follow();
        });
}

const PluginInfo* PluginsWindow::chosen() const {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (!shown.isValid()) return nullptr;
    const int row = static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(shown).row();
    return row < m_model.rowCount() ? &m_model.at(row) : nullptr;
}

void PluginsWindow::checkChosen() {
    const PluginInfo* plugin = chosen();
    if (!plugin || m_cancel) return;
    m_checking = QString::fromStdString(plugin->name);
    m_since.start();
    m_cancel = askQueue<std::vector<PluginTrial>>(
        this, m_works, "plugins", m_working,
        [file = plugin->file](const Progress& progress) { return checkPlugin(file, progress); },
        [this](Result<std::vector<PluginTrial>> trials) {
            m_cancel.reset();
            QStringList lines;
            if (trials) {
                for (const PluginTrial& trial : *trials)
                    if (!trial.problem.empty())
                        lines << QStringLiteral("✗ ") +
                                     QString::fromStdString(trial.item + (trial.item.empty() ? "" : ": ") + trial.what +
                                                            ": " + trial.problem);
                lines.prepend(lines.isEmpty() ? tr("%1 keeps the contract: %n trials went well.", nullptr,
                                                   static_cast<int>(trials->size()))
                                                    .arg(m_checking)
                                              : tr("%1 does not keep the contract.").arg(m_checking));
            } else {
                lines << QString::fromStdString(trials.error().text());
            }
            m_said = lines.join(QChar('\n'));
            follow();  // the list takes longer
            emit activityChanged();
            refresh();
        });
    emit activityChanged();
    follow();
}

void PluginsWindow::colorGraph() {
    const PluginInfo* plugin = chosen();
    if (!plugin) return;
    std::vector<std::string> all;
    for (const PluginItem& item : plugin->items)
        if (item.kind == "coloring") all.push_back(plugin->name + "." + item.name);
    const auto now = std::find(all.begin(), all.end(), m_colored);
    const auto next = now == all.end() ? all.begin() : now + 1;
    m_controller.coloring().clear();
    m_colored = next == all.end() ? std::string() : *next;
    if (!m_colored.empty()) m_controller.coloring().color(m_selection.place(), m_colored);
    follow();
}

std::optional<Activity> PluginsWindow::activity() const {
    if (!m_cancel) return {};
    Activity now;
    now.tag = QString::fromLatin1(row().name);
    now.doing = tr("Checking %1").arg(m_checking);
    now.since = m_since;
    return now;
}

void PluginsWindow::stopActivity() {
    if (!m_cancel) return;
    m_cancel->cancel();
    m_cancel.reset();
    ++m_working;
    m_said = tr("Stopped.");
    emit activityChanged();
    follow();
}

void PluginsWindow::follow() {
    const PluginInfo* plugin = chosen();
    m_check->setEnabled(plugin && !m_cancel);
    const bool colors = plugin && plugin->problem.empty() &&
                        std::any_of(plugin->items.begin(), plugin->items.end(),
                                    [](const PluginItem& item) { return item.kind == "coloring"; });
    m_color->setEnabled(colors && m_selection.hasPlace());
    QStringList lines;
    if (m_cancel) lines << tr("Checking %1…").arg(m_checking);
    else if (!m_said.isEmpty()) lines << m_said;
    else if (plugin && !plugin->problem.empty()) lines << QString::fromStdString(plugin->problem);
    else if (plugin && !plugin->lastFaults.empty()) lines << QString::fromStdString(plugin->lastFaults.back().sentence);
    else if (plugin) lines << QString::fromStdString(plugin->summary);
    if (lines.isEmpty() && m_model.rowCount() == 0) {
        lines << tr("Plugins add passes, rules, importers, oracles and colourings. They are looked for in:");
        for (const PluginFolder& folder : pluginFolders())
            lines << QString::fromStdString(folder.path) + QStringLiteral(" (") + QString::fromStdString(folder.from) +
                         QChar(')');
        lines << tr("`cutaway-cli plugin new` writes one to start from.");
    }
    const QString details = plugin ? pluginDetails(*plugin) : QString();
    if (m_details->toPlainText() != details) m_details->setPlainText(details);
    m_details->setVisible(plugin != nullptr);
    m_state->setText(lines.join(QChar('\n')));
    m_state->setVisible(!lines.isEmpty());
}

}  // namespace cutaway::ui
