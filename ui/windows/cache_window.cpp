#include "ui/windows/cache_window.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QShortcut>
#include <QVBoxLayout>

#include "ui/models/units.h"
#include "ui/models/words.h"
#include "ui/session/ask_queue.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {
namespace {

constexpr KeyHint kCacheKeys[] = {{QT_TRANSLATE_NOOP("cutaway::ui", "Delete the entry"), "Del"}};

}  // namespace

std::span<const KeyHint> CacheWindow::keys() { return kCacheKeys; }

CacheWindow::CacheWindow(const WindowRow& tableRow, const WindowParts&)
    : Window(tableRow),
      m_model(*new CachedGraphsModel(this)),
      m_table(makeList(m_model, CachedGraphsModel::SortRole, tr("Compiled graphs"))),
      m_state(
          new QLabel(tr("Compiled graphs that runs on the CPU have kept are listed here: what they take, and how often "
                        "later runs read them in place of compiling."))),
      m_verify(new QPushButton(tr("Verify"))),
      m_remove(new QPushButton(tr("Delete"))),
      m_clear(new QPushButton(tr("Delete All"))) {
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_verify->setToolTip(tr("Read every byte; what is damaged is removed"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    for (QPushButton* button : {m_verify, m_remove, m_clear}) row->addWidget(button);
    row->addStretch(1);
    column->addLayout(row);
    column->addWidget(m_state);
    column->addWidget(m_table, 1);
    setWidget(page);
    setFocusProxy(m_table);

    connect(m_verify, &QPushButton::clicked, this, [this] { refresh({}, true); });
    connect(m_remove, &QPushButton::clicked, this, &CacheWindow::removeChosen);
    connect(m_clear, &QPushButton::clicked, this, [this] {
        refresh([]() -> Result<void> {
            CT_TRY_VOID(clearGraphs({}));
            return {};
        });
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &CacheWindow::follow);
    auto* remove = new QShortcut(QKeySequence::Delete, m_table);
    remove->setContext(Qt::WidgetShortcut);
    connect(remove, &QShortcut::activated, this, &CacheWindow::removeChosen);
    follow();
}

void CacheWindow::showEvent(QShowEvent* event) {
    Window::showEvent(event);
    refresh();
}

void CacheWindow::refresh(std::function<Result<void>()> first, bool verify) {
    askQueue<CachedGraphs>(
        this, m_lists, "cache", m_listing,
        [first = std::move(first), verify](const Progress&) -> Result<CachedGraphs> {
            if (first) CT_TRY_VOID(first());
            return cachedGraphs({}, verify);
        },
        [this, verify](Result<CachedGraphs> all) {
            if (!all) return m_state->setText(QString::fromStdString(all.error().text()));
            QStringList lines;
            int damaged = 0;
            for (const CachedGraph& graph : all->entries)
                if (!graph.problem.empty()) ++damaged, lines << QString::fromStdString(graph.problem);
            const qsizetype count = static_cast<qsizetype>(all->entries.size()) - (verify ? damaged : 0);
            lines.prepend(
                tr("%1, %2 of %3. A run on the CPU (cutaway-cli run) reads what is kept in place of compiling.")
                    .arg(counted(count, tr("compiled graph"), tr("compiled graphs")), sizeText(all->bytes),
                         sizeText(all->limit)));
            if (verify && damaged == 0) lines << tr("Every byte is as it was written.");
            if (verify) std::erase_if(all->entries, [](const CachedGraph& graph) { return !graph.problem.empty(); });
            for (const std::string& sentence : all->remarks) lines << QString::fromStdString(sentence);
            m_model.setEntries(std::move(all->entries));
            fitColumns(*m_table);
            m_state->setText(lines.join(QChar('\n')));
            follow();
        });
}

void CacheWindow::removeChosen() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (!shown.isValid()) return;
    std::vector<std::string> keys;
    for (const QModelIndex& row : m_table->selectionModel()->selectedRows())
        keys.push_back(
            m_model.at(static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(row).row()).key);
    refresh([keys]() -> Result<void> {
        for (const std::string& key : keys) CT_TRY_VOID(removeGraph({}, key));
        return {};
    });
}

void CacheWindow::follow() {
    m_remove->setEnabled(m_table->selectionModel()->hasSelection());
    m_clear->setEnabled(m_model.rowCount() > 0);
    m_verify->setEnabled(m_model.rowCount() > 0);
}

}  // namespace cutaway::ui
