#include "ui/windows/node_window.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QShortcut>
#include <QStackedWidget>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/windows/definition_dialog.h"
#include "ui/windows/elided_label.h"

namespace cutaway::ui {

NodeWindow::NodeWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_model(*new NodeModel(this)),
      m_title(new ElidedLabel),
      m_empty(new QLabel),
      m_tree(new QTreeView),
      m_whole(new QPlainTextEdit),
      m_define(new QPushButton(tr("&Define This Operator…"))),
      m_pages(new QStackedWidget) {
    m_tree->setModel(&m_model);
    m_tree->setAlternatingRowColors(true);
    m_tree->setAccessibleName(tr("Properties of the node"));
    m_tree->header()->setMinimumSectionSize(40);
    m_tree->setIndentation(12);
    m_tree->setExpandsOnDoubleClick(false);
    QFont bold = m_title->font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(16);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_title);
    column->addWidget(m_tree, 1);
    column->addWidget(m_whole);
    column->addWidget(m_define);
    constexpr int kLines = 5;
    m_whole->setReadOnly(true);
    m_whole->setTabChangesFocus(true);
    m_whole->setAccessibleName(tr("The whole of the chosen value"));
    m_whole->setMaximumHeight(kLines * m_whole->fontMetrics().lineSpacing() + 2 * m_whole->frameWidth() + 8);
    m_whole->hide();
    m_define->setToolTip(tr("Says what the operator computes, so that the graph can be compiled and run"));
    connect(m_define, &QPushButton::clicked, this, &NodeWindow::define);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    setFocusProxy(m_tree);
    showFacts({});

    connect(m_tree, &QTreeView::activated, this, &NodeWindow::go);
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, &NodeWindow::showWhole);
    connect(&m_model, &QAbstractItemModel::modelReset, m_whole, &QWidget::hide);
    connect(&parts.controller, &SessionController::nodeShown, this,
            [this](const std::shared_ptr<const NodeFacts>& facts) { showFacts(*facts); });
    auto* copy = new QShortcut(QKeySequence::Copy, m_tree);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, [this] {
        const QModelIndex row = m_tree->currentIndex();
        QApplication::clipboard()->setText(row.siblingAtColumn(0).data().toString() + QStringLiteral("\t") +
                                           row.siblingAtColumn(1).data(Qt::ToolTipRole).toString());
    });
}

void NodeWindow::showFacts(const NodeFacts& facts) {
    const bool any = facts.after || facts.before;
    m_pages->setCurrentIndex(any ? 1 : 0);
    m_empty->setText(
        m_selection.node() == NodeKey::None
            ? tr("The current node is described here: op, arguments, shapes, source lines, and its history.\n\nClick a node in the Graph or a line in the Text window.")
            : tr("The current node is not part of this step's graphs.\n\nGo back with Alt+Left; its history lists the steps that have it."));
    m_model.setFacts(facts);
    m_definition = facts.definition;
    m_define->setVisible(!m_definition.isEmpty());
    if (!any) return;
    const NodeInfo& node = facts.after ? facts.after->node : facts.before->node;
    m_title->setText(QString::fromStdString(node.name + (node.op.empty() ? "" : "  " + node.op)));
    m_tree->expandToDepth(0);
}

/// Of a row whose value is cut.
void NodeWindow::showWhole(const QModelIndex& row) {
    const QString value = row.siblingAtColumn(1).data(Qt::ToolTipRole).toString();
    const int room = m_tree->columnWidth(1) - 2 * m_tree->fontMetrics().averageCharWidth();
    m_whole->setPlainText(value);
    m_whole->setVisible(m_tree->fontMetrics().horizontalAdvance(value) > room || value.contains(QChar('\n')));
}

/// In a narrow window the values get the larger part.
void NodeWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_tree->header()->resizeSection(0, std::clamp(width() * 2 / 5, 100, 140));
}

void NodeWindow::define() {
    DefinitionDialog dialog(m_definition, this);
    if (dialog.exec() != QDialog::Accepted || !m_controller.model()) return;
    m_controller.open(QString::fromStdString(m_controller.model()->path));
}

/// To the step of a line of the history, and in it to the rewrite that touched the node.
void NodeWindow::goToLife(int step) {
    const Place place{m_selection.place().run, step, -1};
    const NodeKey node = m_selection.node();
    m_controller.findRewrite(place.run, step, node, [this, place, node](int number) {
        m_selection.go(comparisonAt({place.run, place.step, number > 0 ? number : -1}), node);
    });
}

void NodeWindow::go(const QModelIndex& at) {
    const QModelIndex row = at.siblingAtColumn(0);
    const QVariant node = row.data(NodeModel::NodeRole), step = row.data(NodeModel::StepRole);
    if (node.isValid()) m_selection.setNode(static_cast<NodeKey>(node.toULongLong()));
    else if (step.isValid()) goToLife(step.toInt());
    else if (const QString kernel = row.data(NodeModel::KernelRole).toString(); !kernel.isEmpty())
        emit kernelWanted(kernel);
    else m_tree->setExpanded(row, !m_tree->isExpanded(row));
}

}  // namespace cutaway::ui
