#include "ui/windows/search_window.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "cutaway/node_query.h"
#include "ui/graph/graph_picture.h"
#include "ui/models/words.h"
#include "ui/windows/columns.h"
#include "ui/windows/elided_label.h"

namespace cutaway::ui {
namespace {

/// More hits than anybody reads; the count still tells them all.
constexpr int kMaxHits = 2000;

NodeKey idOf(const QTreeWidgetItem& item) { return static_cast<NodeKey>(item.data(0, Qt::UserRole).toULongLong()); }

}  // namespace

SearchWindow::SearchWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_selection(parts.selection),
      m_field(new QLineEdit),
      m_count(new ElidedLabel),
      m_hits(new QTreeWidget) {
    m_field->setPlaceholderText(tr("Words, or: op=mm & numel>1e6 & change=added"));
    m_field->setClearButtonEnabled(true);
    m_count->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // a problem of the query is a sentence
    m_field->setAccessibleName(tr("Search nodes"));
    m_hits->setHeaderLabels({tr("Change"), tr("Node"), tr("Op"), tr("Type"), tr("Module")});
    m_hits->setRootIsDecorated(false);
    m_hits->setUniformRowHeights(true);
    m_hits->setAlternatingRowColors(true);
    m_hits->setAccessibleName(tr("Hits"));
    m_hits->header()->setSortIndicatorClearable(true);
    m_hits->header()->setSortIndicator(-1, Qt::AscendingOrder);  // the graph's order until a header is clicked
    new Columns(m_hits->header(), objectName());
    m_hits->header()->resizeSection(0, 60);
    m_hits->header()->resizeSection(1, 160);
    m_hits->header()->resizeSection(2, 200);
    m_hits->header()->resizeSection(3, 160);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    row->addWidget(m_field, 3);
    row->addWidget(m_count, 2);
    column->addLayout(row);
    column->addWidget(m_hits, 1);
    setWidget(page);
    setFocusProxy(m_field);
    m_count->setText(tr("no graph is shown"));

    connect(m_field, &QLineEdit::textChanged, this, &SearchWindow::search);
    connect(m_field, &QLineEdit::returnPressed, this, [this] { nextHit(true); });
    connect(&parts.controller, &SessionController::shown, this, [this](const std::shared_ptr<const Shown>& what) {
        m_graph = what->graph;
        m_nodes = what->nodes;
        search();
    });
    connect(&parts.controller, &SessionController::modelOpened, this, [this, &controller = parts.controller] {
        m_words[m_model] = m_field->text();
        m_model = controller.modelKey();
        m_field->setText(m_words.value(m_model));
    });
    const auto choose = [this](const QTreeWidgetItem* item) {
        if (item) emit nodeWanted(idOf(*item));
        showCount();
    };
    // Not when the current row changes: getting the focus makes a row current, although the user chose none.
    connect(m_hits, &QTreeWidget::itemSelectionChanged, this,
            [this, choose] { choose(m_hits->selectedItems().value(0)); });
    connect(m_hits, &QTreeWidget::itemActivated, this, choose);
    connect(&parts.selection, &Selection::nodeChanged, this, &SearchWindow::followNode);
}

void SearchWindow::focusField() {
    show();
    raise();
    m_field->setFocus();
    m_field->selectAll();
}

QString SearchWindow::nameOf(NodeKey id) const {
    const UnionGraph::Node* node = m_nodes ? m_nodes->find(id) : nullptr;
    return node ? textOf(node->info.name) : QString();
}

int SearchWindow::hitCount() const { return m_hits->topLevelItemCount(); }

void SearchWindow::nextHit(bool forward) {
    const int count = hitCount();
    if (count == 0) return;
    const int now = m_hits->indexOfTopLevelItem(m_hits->currentItem());
    const int first = forward ? 0 : count - 1, step = forward ? 1 : count - 1;
    m_hits->setCurrentItem(m_hits->topLevelItem(now < 0 ? first : (now + step) % count));
}

void SearchWindow::search() {
    {
        const QSignalBlocker quiet(m_hits);
        m_hits->clear();
    }
    m_hits->setSortingEnabled(false);  // rows that come are put at the end, not in their place
    m_searched = false;
    if (!m_graph) return;
    const auto query = NodeQuery::parse(m_field->text().toStdString());
    if (!query) {
        m_count->setText(QString::fromStdString(query.error().message));
        return;
    }
    if (query->isEmpty()) {
        m_count->setText(
            counted(static_cast<qsizetype>(m_graph->nodes.size()), tr("node to search"), tr("nodes to search")));
        return;
    }
    int hits = 0;
    QList<QTreeWidgetItem*> items;
    for (const auto& node : m_graph->nodes) {
        if (!query->matches(node) || ++hits > kMaxHits) continue;
        auto* item = new QTreeWidgetItem({signOf(node.change), textOf(node.info.name), textOf(node.info.op),
                                          textOf(node.info.type), textOf(node.info.module)});
        item->setData(0, Qt::UserRole, packed(node.info.id));
        items << item;
    }
    m_hits->addTopLevelItems(items);
    m_hits->setSortingEnabled(true);
    m_all = hits;
    m_searched = true;
    followNode(m_selection.node());
}

/// The current node is the current hit, if it is one.
void SearchWindow::followNode(NodeKey node) {
    const QSignalBlocker quiet(m_hits);
    QTreeWidgetItem* hit = nullptr;
    for (int i = 0; i < hitCount() && !hit; ++i)
        if (idOf(*m_hits->topLevelItem(i)) == node) hit = m_hits->topLevelItem(i);
    m_hits->setCurrentItem(hit);
    if (hit) m_hits->scrollToItem(hit);
    m_hits->viewport()->update();
    showCount();
}

void SearchWindow::showCount() {
    if (!m_searched) return;  // no query, or a wrong one: then m_count says what is wrong
    const int now = m_hits->indexOfTopLevelItem(m_hits->currentItem());
    if (m_all > kMaxHits) m_count->setText(tr("%1 hits, the first %2 listed").arg(m_all).arg(kMaxHits));
    else if (now >= 0) m_count->setText(tr("%1 of %2").arg(now + 1).arg(counted(m_all, tr("hit"), tr("hits"))));
    else m_count->setText(counted(m_all, tr("hit"), tr("hits")));
}

}  // namespace cutaway::ui
