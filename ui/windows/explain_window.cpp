#include "ui/windows/explain_window.h"

#include <QApplication>
#include <QClipboard>
#include <QFontDatabase>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QTreeView>
#include <QVBoxLayout>

namespace cutaway::ui {

ExplainWindow::ExplainWindow(SessionController& controller, Selection& selection, QWidget* parent)
    : QDockWidget(tr("Explain"), parent), m_controller(controller), m_selection(selection), m_model(*new ExplainModel(this)),
      m_filtered(new QSortFilterProxyModel(this)), m_title(new QLabel), m_empty(new QLabel), m_filter(new QLineEdit), m_rows(new QTreeView),
      m_text(new QPlainTextEdit), m_pages(new QStackedWidget) {
    setObjectName(QStringLiteral("explain"));
    m_filtered->setSourceModel(&m_model);
    m_filtered->setFilterKeyColumn(-1);
    m_filtered->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_filtered->setSortRole(ExplainModel::SortRole);
    m_rows->setModel(m_filtered);
    m_rows->setRootIsDecorated(false);
    m_rows->setAlternatingRowColors(true);
    m_rows->setUniformRowHeights(true);
    m_rows->setSortingEnabled(true);
    m_rows->sortByColumn(-1, Qt::AscendingOrder);  // the model's own order until a header is clicked
    m_rows->setAccessibleName(tr("Rules that may start at the node"));
    m_rows->header()->setStretchLastSection(false);
    m_rows->header()->resizeSection(ExplainModel::Rule, 230);
    m_rows->header()->resizeSection(ExplainModel::Answer, 96);
    m_rows->header()->resizeSection(ExplainModel::Reason, 330);
    for (int column : {ExplainModel::Tried, ExplainModel::Applied, ExplainModel::Time}) m_rows->header()->resizeSection(column, 64);
    m_filter->setPlaceholderText(tr("Filter rules and reasons"));
    m_filter->setClearButtonEnabled(true);
    m_text->setReadOnly(true);
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setLineWrapMode(QPlainTextEdit::WidgetWidth);
    m_text->setAccessibleName(tr("Text of the rule"));
    m_text->setPlaceholderText(tr("The text of the rule in the current row."));
    m_title->setWordWrap(true);
    m_title->setTextFormat(Qt::PlainText);
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(16);

    auto* split = new QSplitter(Qt::Vertical);
    split->addWidget(m_rows);
    split->addWidget(m_text);
    split->setStretchFactor(0, 3);
    split->setStretchFactor(1, 1);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_title);
    column->addWidget(m_filter);
    column->addWidget(split, 1);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    showAnswers({});

    connect(m_filter, &QLineEdit::textChanged, m_filtered, &QSortFilterProxyModel::setFilterFixedString);
    connect(m_rows, &QTreeView::activated, this, &ExplainWindow::go);
    connect(m_rows->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &ExplainWindow::showRule);
    // Explaining costs time: only when somebody looks.
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
        m_seen = visible;
        ask();
    });
    connect(&controller, &SessionController::nodeShown, this, &ExplainWindow::ask);
    connect(&controller, &SessionController::explained, this, [this](const std::shared_ptr<const Explained>& what) { showAnswers(*what); });
    auto* copy = new QShortcut(QKeySequence::Copy, m_rows);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, [this] {
        const QModelIndex at = m_filtered->mapToSource(m_rows->currentIndex());
        if (at.isValid()) QApplication::clipboard()->setText(m_model.lineOf(at.row()));
    });
}

void ExplainWindow::ask() {
    if (m_seen && m_selection.hasPlace()) m_controller.explain();
}

void ExplainWindow::showAnswers(const Explained& explained) {
    m_model.setExplained(explained);
    const bool any = m_model.rowCount() > 0;
    m_pages->setCurrentIndex(any ? 1 : 0);
    QString name;
    for (const auto& [id, text] : explained.names)
        if (id == explained.node) name = QString::fromStdString(text);
    if (explained.node == NodeId::None)
        m_empty->setText(tr("For the current node and each rule: whether the rule applies, or the first condition that failed.\n\nClick a node in the Graph or a line in the Text window."));
    else
        m_empty->setText(tr("No rule starts at %1, or it is not part of the graph before this step.\n\nRules see the graph before their step: choose a later step, or the node that %1 came from.").arg(name.isEmpty() ? tr("this node") : name));
    if (!any) return;
    const QString step = QString::fromStdString(explained.pass);
    if (explained.node == NodeId::None) m_title->setText(tr("What the rules of %1 tried and did. Choose a node to see why a rule does or does not apply there.").arg(step));
    else m_title->setText(step.isEmpty() ? tr("Rules that may start at %1, on the graph as opened").arg(name) : tr("Rules that may start at %1, on the graph before %2").arg(name, step));
    m_rows->setCurrentIndex(m_filtered->index(0, 0));
}

void ExplainWindow::showRule() {
    const QModelIndex at = m_filtered->mapToSource(m_rows->currentIndex());
    QString text = at.isValid() ? m_model.ruleText(at.row()) : QString();
    const QString reason = at.isValid() ? at.siblingAtColumn(ExplainModel::Reason).data().toString() : QString();
    if (!reason.isEmpty()) text.prepend(tr("Why not: %1\n\n").arg(reason));
    m_text->setPlainText(text);
}

void ExplainWindow::go() {
    const QModelIndex at = m_filtered->mapToSource(m_rows->currentIndex());
    if (const QVariant node = at.data(ExplainModel::NodeRole); node.isValid()) m_selection.setNode(static_cast<NodeId>(node.toUInt()));
}

}  // namespace cutaway::ui
