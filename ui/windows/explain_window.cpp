#include "ui/windows/explain_window.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/windows/columns.h"

namespace cutaway::ui {

ExplainWindow::ExplainWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_model(*new ExplainModel(this)),
      m_filtered(new QSortFilterProxyModel(this)),
      m_title(new QLabel),
      m_empty(new QLabel),
      m_filter(new QLineEdit),
      m_rows(new QTreeView),
      m_text(new QTextBrowser),
      m_pages(new QStackedWidget) {
    m_filtered->setSourceModel(&m_model);
    m_filtered->setFilterKeyColumn(-1);
    m_filtered->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_filtered->setSortRole(ExplainModel::SortRole);
    arrangeRows();
    m_filter->setPlaceholderText(tr("Filter rules and reasons"));
    m_filter->setAccessibleName(tr("Filter rules and reasons"));
    m_filter->setClearButtonEnabled(true);
    m_text->setOpenLinks(false);
    m_text->setAccessibleName(tr("About the rule in the current row"));
    m_text->setPlaceholderText(tr("About the rule in the current row."));
    m_title->setWordWrap(true);
    m_title->setTextFormat(Qt::PlainText);
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(16);

    auto* split = new QSplitter(Qt::Vertical);
    split->addWidget(m_rows);
    split->addWidget(m_text);
    split->setStretchFactor(0, 1);
    split->setStretchFactor(1, 1);
    split->setChildrenCollapsible(false);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_title);
    column->addWidget(m_filter);
    column->addWidget(split, 1);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    setFocusProxy(m_rows);
    showAnswers({});

    connect(m_filter, &QLineEdit::textChanged, m_filtered, &QSortFilterProxyModel::setFilterFixedString);
    connect(m_rows, &QTreeView::activated, this, &ExplainWindow::go);
    connect(m_rows->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &ExplainWindow::showRule);
    connect(m_text, &QTextBrowser::anchorClicked, this,
            [this](const QUrl& link) { m_selection.setNode(static_cast<NodeKey>(link.path().toULongLong())); });
    connect(&m_model, &ExplainModel::ruleToggled, this, &ExplainWindow::toggle);
    // Explaining costs time: only when somebody looks.
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
        m_seen = visible;
        ask();
    });
    connect(&parts.controller, &SessionController::nodeShown, this, &ExplainWindow::ask);
    connect(&parts.controller, &SessionController::explained, this,
            [this](const std::shared_ptr<const Explained>& what) { showAnswers(*what); });
}

void ExplainWindow::arrangeRows() {
    m_rows->setModel(m_filtered);
    m_rows->setRootIsDecorated(false);
    m_rows->setAlternatingRowColors(true);
    m_rows->setUniformRowHeights(true);
    m_rows->setSortingEnabled(true);
    m_rows->sortByColumn(-1, Qt::AscendingOrder);  // the model's own order until a header is clicked
    m_rows->setAccessibleName(tr("Rules that may start at the node"));
    m_rows->setContextMenuPolicy(Qt::CustomContextMenu);
    m_rows->setMinimumHeight(60);
    QHeaderView* header = m_rows->header();
    header->setStretchLastSection(false);
    header->setMinimumSectionSize(30);
    header->setSectionResizeMode(ExplainModel::Rule, QHeaderView::Stretch);
    m_columns = new Columns(header, objectName(), {ExplainModel::Reason});  // a sentence needs the room below
    const auto wide = [header](int column, const QString& text) {
        header->resizeSection(column, header->fontMetrics().horizontalAdvance(text) + 14);
    };
    wide(ExplainModel::Answer, tr("Applies"));
    wide(ExplainModel::Tried, tr("Tried"));
    wide(ExplainModel::Applied, tr("Applied"));
    wide(ExplainModel::Time, QStringLiteral("00.0 ms"));
    connect(m_rows, &QTreeView::customContextMenuRequested, this, &ExplainWindow::showMenu);
    auto* copy = new QShortcut(QKeySequence::Copy, m_rows);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &ExplainWindow::copyRow);
}

void ExplainWindow::ask() {
    if (m_seen && m_selection.hasPlace()) m_controller.explain();
}

void ExplainWindow::showAnswers(const Explained& explained) {
    const QString kept = m_model.ruleName(currentRow());
    m_model.setExplained(explained);
    const bool any = m_model.rowCount() > 0;
    m_pages->setCurrentIndex(any ? 1 : 0);
    const QString step = QString::fromStdString(explained.pass),
                  name = explained.node == NodeKey::None ? QString() : explained.nameOf(explained.node);
    if (explained.stopped) m_empty->setText(tr("Explaining was cancelled. Ctrl+E to retry."));
    else if (explained.node == NodeKey::None)
        m_empty->setText(
            step.isEmpty()
                ? tr("For the current node and each rule: whether the rule applies, or the first condition that failed. For a step: what its rules tried and did.\n\nClick a node in the Graph or a line in the Text window.")
                : tr("%1 tried no rules and made no rewrites.\n\nClick a node in the Graph or a line in the Text window to see which rules apply there.")
                      .arg(step));
    else
        m_empty->setText(
            tr("No rule starts at %1, or it is not part of the graph before this step.\n\nRules see the graph before their step: choose a later step, or the node that %1 came from.")
                .arg(name));
    if (!any) return;
    QString title =
        tr("What the rules of %1 tried and did. Choose a node to see why a rule does or does not apply there.")
            .arg(step);
    if (explained.node != NodeKey::None) {
        const RewriteInfo* rewrite = m_controller.rewriteAt(m_selection.place());
        if (explained.rules.empty() && rewrite && rewrite->key == explained.node)
            title = tr("Rule %1 fired at %2. Statistics of the rules of %3:")
                        .arg(QString::fromStdString(rewrite->rule), name, step);
        else if (explained.rules.empty())
            title = tr("No rule starts at %1 before %2. What the rules of the step tried and did:").arg(name, step);
        else if (step.isEmpty()) title = tr("Rules that may start at %1, on the graph as opened").arg(name);
        else if (explained.before.rewrites > 0)
            title = tr("Rules that may start at %1, in %2 after its first %3")
                        .arg(name, step,
                             explained.before.rewrites == 1 ? tr("rewrite")
                                                            : tr("%1 rewrites").arg(explained.before.rewrites));
        else title = tr("Rules that may start at %1, on the graph before %2").arg(name, step);
    }
    m_title->setText(title);
    m_columns->setRoom(ExplainModel::Answer, !explained.rules.empty());
    // The rule that did it; else the one that was looked at, so that going through nodes compares one rule.
    int row = m_model.currentRow();
    for (int i = 0; row < 0 && !kept.isEmpty() && i < m_model.rowCount(); ++i)
        if (m_model.ruleName(i) == kept) row = i;
    const QModelIndex at = m_filtered->mapFromSource(m_model.index(std::max(row, 0), 0));
    m_rows->setCurrentIndex(at.isValid() ? at : m_filtered->index(0, 0));
    showRule();
}

int ExplainWindow::currentRow() const {
    const QModelIndex at = m_filtered->mapToSource(m_rows->currentIndex());
    return at.isValid() ? at.row() : -1;
}

void ExplainWindow::showRule() { m_text->setHtml(m_model.details(currentRow())); }

void ExplainWindow::go() {
    const QVariant node = m_model.index(currentRow(), 0).data(ExplainModel::NodeRole);
    if (node.isValid()) m_selection.setNode(static_cast<NodeKey>(node.toULongLong()));
}

void ExplainWindow::toggle(const QString& name, bool enabled) {
    if (!m_controller.runOf(m_selection.place().run)) {
        emit message(tr("Compile the model first (Ctrl+B)."));
        return;
    }
    emit message(enabled ? tr("Compiling with %1").arg(name)
                         : tr("Compiling without %1; the difference from the previous run will be shown").arg(name));
    m_controller.setEnabled(m_selection.place().run, name, enabled);
}

void ExplainWindow::showMenu(QPoint at) {
    const int row = currentRow();
    if (row < 0) return;
    QMenu menu;
    const QModelIndex index = m_model.index(row, ExplainModel::Rule);
    const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    if (index.flags() & Qt::ItemIsUserCheckable)
        menu.addAction(on ? tr("Compile without this rule") : tr("Compile with this rule"), this, [this, index, on] {
            m_model.setData(index, on ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
        });
    menu.addAction(tr("List its rewrites in Steps"), this, [this, row] { emit rewritesWanted(m_model.ruleName(row)); });
    menu.addAction(tr("Copy row"), this, &ExplainWindow::copyRow);
    menu.addAction(tr("Copy text of the rule"), this,
                   [this, row] { QApplication::clipboard()->setText(m_model.ruleText(row)); });
    menu.exec(m_rows->viewport()->mapToGlobal(at));
}

void ExplainWindow::changeEvent(QEvent* event) {
    Window::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) showRule();  // its colours are part of its text
}

/// Names come first: in a narrow window the counts go, which the text below tells too.
void ExplainWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    const int letter = m_rows->fontMetrics().averageCharWidth();
    m_columns->setRoom(ExplainModel::Time, width() >= 70 * letter);
    m_columns->setRoom(ExplainModel::Tried, width() >= 60 * letter);
}

void ExplainWindow::copyRow() {
    if (currentRow() >= 0) QApplication::clipboard()->setText(m_model.lineOf(currentRow()));
}

}  // namespace cutaway::ui
