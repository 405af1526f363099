#include "ui/windows/log_window.h"

#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QShortcut>
#include <QStackedWidget>
#include <QTableView>
#include <QUrl>
#include <algorithm>

#include "ui/windows/columns.h"

namespace cutaway::ui {

LogWindow::LogWindow(const WindowRow& tableRow, const WindowParts& parts) : Window(tableRow), m_table(new QTableView) {
    LogModel& model = parts.controller.log();
    m_table->setModel(&model);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAlternatingRowColors(true);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->setWordWrap(true);
    m_table->setAccessibleName(tr("Messages"));
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_table->horizontalHeader()->setSectionResizeMode(LogModel::What, QHeaderView::Stretch);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_columns = new Columns(m_table->horizontalHeader(), objectName());
    auto* empty = new QLabel(tr("What the program did and what went wrong is written here."));
    empty->setAlignment(Qt::AlignCenter);
    empty->setWordWrap(true);
    auto* pages = new QStackedWidget;
    pages->addWidget(empty);
    pages->addWidget(m_table);
    setWidget(pages);
    setFocusProxy(m_table);
    connect(&model, &QAbstractItemModel::rowsInserted, this, [this, pages] {
        pages->setCurrentIndex(1);
        showColumns();
        m_table->scrollToBottom();
    });
    connect(m_table, &QTableView::activated, this, [&model, &selection = parts.selection](const QModelIndex& row) {
        const LogEntry& entry = model.at(row.row());
        if (!entry.folder.isEmpty()) {
            const QFileInfo written(entry.folder);
            QDesktopServices::openUrl(QUrl::fromLocalFile(written.isDir() ? written.filePath() : written.path()));
        }
        if (entry.place)
            selection.go(comparisonAt(*entry.place), entry.node != NodeKey::None ? entry.node : selection.node());
    });
    auto* copy = new QShortcut(QKeySequence::Copy, m_table);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &LogWindow::copyRows);
}

/// The messages get the most room, and that of a column in which nothing stands.
void LogWindow::showColumns() {
    const QAbstractItemModel& model = *m_table->model();
    for (int column = 0; column < LogModel::ColumnCount; ++column) {
        bool any = column == LogModel::What;
        for (int row = model.rowCount(); row-- > 0 && !any;)
            any = !model.index(row, column).data().toString().isEmpty();
        m_columns->setRoom(column, any);
        if (column != LogModel::What) m_table->setColumnWidth(column, m_table->viewport()->width() * 3 / 10);
    }
}

void LogWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    showColumns();
}

void LogWindow::copyRows() {
    QModelIndexList rows = m_table->selectionModel()->selectedRows();
    std::sort(rows.begin(), rows.end());
    QStringList lines;
    for (const QModelIndex& row : rows) {
        QStringList parts;
        for (int column = 0; column < LogModel::ColumnCount; ++column)
            parts << row.siblingAtColumn(column).data().toString();
        parts.removeAll(QString());
        lines << parts.join(QStringLiteral("\t"));
    }
    QApplication::clipboard()->setText(lines.join('\n'));
}

}  // namespace cutaway::ui
