#include "ui/windows/graph_dialog.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

enum Column { Name, Nodes, Ops, Inputs, Outputs, Kinds, ColumnCount };

/// Counts sort as numbers.
class Row : public QTreeWidgetItem {
  public:
    using QTreeWidgetItem::QTreeWidgetItem;
    bool operator<(const QTreeWidgetItem& other) const override {
        const int column = treeWidget() ? treeWidget()->sortColumn() : 0;
        if (column == Name || column == Kinds) return QTreeWidgetItem::operator<(other);
        return text(column).toInt() < other.text(column).toInt();
    }
};

QString mostFrequent(const GraphSummary& graph) {
    constexpr size_t kNamed = 4;
    QStringList names;
    for (size_t i = 0; i < std::min(kNamed, graph.ops.size()); ++i)
        names << QStringLiteral("%1 %2").arg(graph.ops[i].count).arg(QString::fromStdString(graph.ops[i].op));
    return names.join(QStringLiteral(", ")) + (graph.ops.size() > kNamed ? QStringLiteral(", …") : QString());
}

}  // namespace

GraphDialog::GraphDialog(const std::vector<GraphSummary>& graphs, const QString& path, const QString& current,
                         QWidget* parent)
    : QDialog(parent), m_filter(new QLineEdit), m_list(new QTreeWidget) {
    setObjectName(QStringLiteral("graphDialog"));
    setWindowTitle(tr("Choose a graph"));
    m_filter->setPlaceholderText(tr("Filter graphs and ops"));
    m_filter->setAccessibleName(m_filter->placeholderText());
    m_filter->setClearButtonEnabled(true);
    m_list->setRootIsDecorated(false);
    m_list->setUniformRowHeights(true);
    m_list->setAlternatingRowColors(true);
    m_list->setAccessibleName(tr("Graphs"));
    m_list->setHeaderLabels(
        {tr("Graph"), tr("Nodes"), tr("Ops"), tr("Inputs"), tr("Outputs"), tr("Most frequent ops")});
    // Graphs of a folder are named by their paths, which begin alike. Other names are names.
    const QFileInfo file(path);
    QStringList names;
    for (const GraphSummary& graph : graphs) names << QString::fromStdString(graph.name);
    const QString folders = file.isDir() ? sharedFolders(names) : QString();
    for (size_t i = 0; i < graphs.size(); ++i) {
        const GraphSummary& graph = graphs[i];
        int ops = 0;
        for (const OpSummary& op : graph.ops) ops += op.count;
        auto* row = new Row(m_list, {names[static_cast<qsizetype>(i)].mid(folders.size()), QString::number(graph.nodes),
                                     QString::number(ops), QString::number(graph.inputs),
                                     QString::number(graph.outputs), mostFrequent(graph)});
        row->setData(Name, Qt::UserRole, names[static_cast<qsizetype>(i)]);
        row->setToolTip(Name, names[static_cast<qsizetype>(i)]);
        for (int column = Nodes; column <= Outputs; ++column)
            row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        if (names[static_cast<qsizetype>(i)] == current) m_list->setCurrentItem(row);
    }
    m_list->sortByColumn(-1, Qt::AscendingOrder);  // in file order until a header is clicked
    m_list->setSortingEnabled(true);
    for (int column = 0; column < ColumnCount; ++column) m_list->resizeColumnToContents(column);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Cancel);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_list, &QTreeWidget::itemActivated, this, &QDialog::accept);
    connect(m_filter, &QLineEdit::textChanged, this, &GraphDialog::filter);
    connect(m_list, &QTreeWidget::currentItemChanged, this, [this, open = buttons->button(QDialogButtonBox::Open)] {
        open->setEnabled(!graph().isEmpty());
        open->setToolTip(graph().isEmpty() ? tr("Choose a graph of the list first.") : QString());
    });
    auto* column = new QVBoxLayout(this);
    auto* what = new QLabel(tr("%1 holds %2. Which one do you want to look at?")
                                .arg(file.fileName() + (folders.isEmpty() ? QString() : QChar('/') + folders),
                                     counted(static_cast<qsizetype>(graphs.size()), tr("graph"), tr("graphs"))));
    what->setWordWrap(true);
    what->setTextFormat(Qt::PlainText);
    column->addWidget(what);
    column->addWidget(m_filter);
    column->addWidget(m_list, 1);
    column->addWidget(buttons);
    resize(820, 420);
    m_filter->installEventFilter(this);
    m_filter->setFocus();
}

/// What is typed filters the list, and the keys that do not type go through it.
bool GraphDialog::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        constexpr int kListKeys[] = {Qt::Key_Up, Qt::Key_Down, Qt::Key_PageUp, Qt::Key_PageDown};
        if (std::ranges::count(kListKeys, static_cast<QKeyEvent*>(event)->key()) > 0) {
            QCoreApplication::sendEvent(m_list, event);
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

QString GraphDialog::graph() const {
    const QTreeWidgetItem* row = m_list->currentItem();
    return row && !row->isHidden() ? row->data(Name, Qt::UserRole).toString() : QString();
}

void GraphDialog::filter(const QString& text) {
    QTreeWidgetItem* first = nullptr;
    for (int i = 0; i < m_list->topLevelItemCount(); ++i) {
        QTreeWidgetItem* row = m_list->topLevelItem(i);
        row->setHidden(!row->text(Name).contains(text, Qt::CaseInsensitive) &&
                       !row->text(Kinds).contains(text, Qt::CaseInsensitive));
        if (!row->isHidden() && !first) first = row;
    }
    if (!m_list->currentItem() || m_list->currentItem()->isHidden()) m_list->setCurrentItem(first);
}

}  // namespace cutaway::ui
