#include "ui/windows/differences_window.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QTreeWidgetItemIterator>
#include <QVBoxLayout>

#include "cutaway/comparison.h"
#include "ui/graph/graph_picture.h"
#include "ui/models/words.h"
#include "ui/windows/elided_label.h"

namespace cutaway::ui {
namespace {

constexpr size_t kMostListed = 500;  // of one part: more than anybody reads

NodeKey rowKey(const QTreeWidgetItem& item) { return static_cast<NodeKey>(item.data(0, Qt::UserRole).toULongLong()); }

/// "aten.mm.default", where it was edited with what it was.
QString opChange(const UnionGraph::Node& node) {
    const QString op = shortOp(node.info.op);
    return node.beforeOp.empty() || node.beforeOp == node.info.op ? op
                                                                  : shortOp(node.beforeOp) + QStringLiteral(" → ") + op;
}
QString typeChange(const UnionGraph::Node& node) {
    const QString type = textOf(node.info.type);
    return node.beforeType.empty() || node.beforeType == node.info.type
               ? type
               : textOf(node.beforeType) + QStringLiteral(" → ") + type;
}

}  // namespace

DifferencesWindow::DifferencesWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_selection(parts.selection),
      m_summary(new ElidedLabel),
      m_previous(new QPushButton(tr("Previous Part"))),
      m_next(new QPushButton(tr("Next Part"))),
      m_parts(new QTreeWidget) {
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_parts->setHeaderLabels({tr("Part"), tr("Op"), tr("Type"), tr("Pair")});
    m_parts->setUniformRowHeights(true);
    m_parts->setAlternatingRowColors(true);
    m_parts->setAccessibleName(tr("Parts that differ"));
    m_parts->header()->resizeSection(0, 260);
    m_parts->header()->resizeSection(1, 200);
    m_parts->header()->resizeSection(2, 200);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    row->addWidget(m_summary, 1);
    for (QPushButton* button : {m_previous, m_next}) {
        button->setAutoDefault(false);
        row->addWidget(button);
    }
    column->addLayout(row);
    column->addWidget(m_parts, 1);
    setWidget(page);
    setFocusProxy(m_parts);
    showParts();

    connect(m_previous, &QPushButton::clicked, this, [this] { goToPart(false); });
    connect(m_next, &QPushButton::clicked, this, [this] { goToPart(true); });
    // Not when the current row changes: getting the focus makes a row current, although the user chose none.
    connect(m_parts, &QTreeWidget::itemSelectionChanged, this, [this] { goTo(m_parts->selectedItems().value(0)); });
    connect(m_parts, &QTreeWidget::itemActivated, this, &DifferencesWindow::goTo);
    connect(&parts.controller, &SessionController::shown, this, [this](const std::shared_ptr<const Shown>& what) {
        m_shown = what;
        m_listed = false;
        showParts();
    });
    connect(&parts.controller, &SessionController::modelOpened, this, [this] {
        m_shown.reset();
        m_listed = false;
        showParts();
    });
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool onScreen) {
        m_onScreen = onScreen;
        showParts();
    });
    connect(&parts.selection, &Selection::nodeChanged, this, &DifferencesWindow::followNode);
}

void DifferencesWindow::showParts() {
    if (m_listed || (!m_onScreen && m_shown)) return;
    m_listed = true;
    {
        const QSignalBlocker quiet(m_parts);
        m_parts->clear();
    }
    if (!m_shown || m_shown->comparison.before == m_shown->comparison.after || m_shown->beside) {
        m_summary->setText(m_shown ? tr("Nothing is compared here: choose a step, or Ctrl+click two of them.")
                                   : tr("The parts in which two graphs differ are listed here."));
    } else {
        const DiffReport report = reportOf(*m_shown->graph);
        for (const DiffPart& part : report.parts) addPart(part);
        addUnsure();
        QStringList said{tr("distance %1").arg(report.distance),
                         counted(static_cast<qsizetype>(report.parts.size()), tr("part"), tr("parts"))};
        if (report.likely) said << tr("%1 likely the same").arg(report.likely);
        if (report.unsure) said << tr("%1 perhaps the same").arg(report.unsure);
        m_summary->setText(said.join(QStringLiteral(" · ")));
    }
    for (QPushButton* button : {m_previous, m_next}) button->setEnabled(m_parts->topLevelItemCount() > 0);
    followNode(m_selection.node());
}

QTreeWidgetItem* DifferencesWindow::addNode(QTreeWidgetItem& part, NodeKey id) {
    const UnionGraph::Node* node = m_shown->nodes->find(id);
    if (!node) return nullptr;
    const QString sign = signOf(node->change);
    auto* row = new QTreeWidgetItem(
        &part, {(sign.isEmpty() ? QStringLiteral("= ") : sign + QChar(' ')) + textOf(node->info.name), opChange(*node),
                typeChange(*node), certaintyWord(node->certainty)});
    row->setData(0, Qt::UserRole, packed(id));
    return row;
}

void DifferencesWindow::addPart(const DiffPart& part) {
    QStringList counts;
    const std::pair<int, QString> all[] = {{part.added, QStringLiteral("+%1")},
                                           {part.removed, QStringLiteral("−%1")},
                                           {part.edited, QStringLiteral("~%1")},
                                           {part.rewired, tr("%1 rewired")}};
    for (const auto& [count, text] : all)
        if (count > 0) counts << text.arg(count);
    QString title = counts.join(QChar(' '));
    if (!part.module.empty()) title += QStringLiteral("  ") + textOf(part.module);
    auto* top = new QTreeWidgetItem(m_parts, {title});
    if (!part.nodes.empty()) top->setData(0, Qt::UserRole, packed(part.nodes.front()));
    for (size_t i = 0; i < std::min(part.nodes.size(), kMostListed); ++i) addNode(*top, part.nodes[i]);
    if (part.nodes.size() > kMostListed)
        new QTreeWidgetItem(top, {tr("and %1 more").arg(part.nodes.size() - kMostListed)});
    // One part is read at once; of several their list is.
    top->setExpanded(m_parts->topLevelItemCount() == 1);
}

/// Pairs that may be wrong, the least sure first.
void DifferencesWindow::addUnsure() {
    QTreeWidgetItem* top = nullptr;
    size_t listed = 0;
    for (const Certainty certainty : {Certainty::Unsure, Certainty::Likely})
        for (const UnionGraph::Node& node : m_shown->graph->nodes) {
            const bool pair = node.change == Change::Unchanged || node.change == Change::Edited;
            if (!pair || node.certainty != certainty || ++listed > kMostListed) continue;
            if (!top) top = new QTreeWidgetItem(m_parts, {tr("Pairs that are not sure")});
            addNode(*top, node.info.id);
        }
    if (top) top->setData(0, Qt::UserRole, top->child(0)->data(0, Qt::UserRole));
}

void DifferencesWindow::goTo(const QTreeWidgetItem* item) {
    if (item && rowKey(*item) != NodeKey::None) emit nodeWanted(rowKey(*item));
}

void DifferencesWindow::goToPart(bool forward) {
    const int count = m_parts->topLevelItemCount();
    QTreeWidgetItem* now = m_parts->currentItem();
    while (now && now->parent()) now = now->parent();
    const int at = now ? m_parts->indexOfTopLevelItem(now) : forward ? -1 : count;
    m_parts->setCurrentItem(m_parts->topLevelItem((at + (forward ? 1 : count - 1)) % count));
}

/// The current node's row is the current one, if it has one; a part whose first node it is stays chosen.
void DifferencesWindow::followNode(NodeKey node) {
    if (!m_listed || node == NodeKey::None) return;
    const QTreeWidgetItem* const now = m_parts->currentItem();
    if (now && now->isSelected() && rowKey(*now) == node) return;
    const QSignalBlocker quiet(m_parts);
    for (QTreeWidgetItemIterator at(m_parts); *at; ++at) {
        if (!(*at)->parent() || rowKey(**at) != node) continue;
        m_parts->setCurrentItem(*at);
        return m_parts->viewport()->update();
    }
    m_parts->setCurrentItem(nullptr);
    m_parts->viewport()->update();
}

}  // namespace cutaway::ui
