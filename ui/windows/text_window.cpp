#include "ui/windows/text_window.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QShortcut>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <algorithm>

#include "ui/models/words.h"
#include "ui/windows/elided_label.h"
#include "ui/windows/text_delegate.h"

namespace cutaway::ui {

TextWindow::TextWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_model(*new TextModel(this)),
      m_table(new QTableView),
      m_sides(new QScrollBar(Qt::Horizontal)),
      m_pages(new QStackedWidget) {
    m_table->setModel(&m_model);
    auto* delegate = new TextDelegate(m_table);
    m_table->setItemDelegate(delegate);
    m_sides->setAccessibleName(tr("Scroll both sides"));
    connect(m_sides, &QScrollBar::valueChanged, this, [this, delegate](int value) {
        delegate->setShift(value);
        m_table->viewport()->update();
    });
    m_table->viewport()->installEventFilter(this);
    // Not by the resize event: it comes before the columns have their new widths.
    connect(m_table->horizontalHeader(), &QHeaderView::sectionResized, this, [this] {
        if (m_longest > 0) arrangeScrolling();
    });
    m_table->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->setWordWrap(false);
    m_table->setAccessibleName(tr("Text of the graph"));
    m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    m_table->verticalHeader()->setDefaultSectionSize(QFontMetrics(m_table->font()).height() + 2);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    auto* empty = new QLabel(tr(
        "The text of the graph before and after a step is compared here, line by line and word by word.\n\nOpen a model (Ctrl+O)."));
    empty->setAlignment(Qt::AlignCenter);
    empty->setWordWrap(true);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeBar());
    column->addWidget(m_table, 1);
    column->addWidget(m_sides);
    m_pages->addWidget(empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    setFocusProxy(m_table);

    connect(&parts.controller, &SessionController::textShown, this,
            [this](const std::shared_ptr<const ShownText>& what) { showText(*what); });
    connect(&parts.controller, &SessionController::modelOpened, this, [this] { m_shown.reset(); });
    connect(&parts.selection, &Selection::nodeChanged, this, &TextWindow::followNode);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
        if (!m_following && m_model.nodeAt(row.row()) != NodeKey::None) m_selection.setNode(m_model.nodeAt(row.row()));
    });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& row) {
        m_model.unfold(row.row());
        arrangeColumns();
    });
    m_table->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(m_table, &QTableView::customContextMenuRequested, this, [this](QPoint at) {
        const NodeKey node = m_model.nodeAt(m_table->indexAt(at).row());
        if (node == NodeKey::None) return;
        m_selection.setNode(node);
        emit menuWanted(node, m_table->viewport()->mapToGlobal(at));
    });
    auto* copy = new QShortcut(QKeySequence::Copy, m_table);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &TextWindow::copyRows);
}

bool TextWindow::isSettled() const {
    return !m_selection.hasPlace() || (m_shown && *m_shown == m_selection.comparison());
}

QWidget* TextWindow::makeBar() {
    auto* bar = new QWidget;
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(6, 4, 6, 4);
    m_counts = new ElidedLabel;
    m_counts->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_layout = new QComboBox;
    m_layout->addItems({tr("Unified"), tr("Side by side")});
    m_layout->setAccessibleName(tr("Text layout"));
    connect(m_layout, &QComboBox::currentIndexChanged, this, [this](int layout) {
        m_model.setLayout(static_cast<TextModel::Layout>(layout));
        arrangeColumns();
    });
    auto* fold = new QCheckBox(tr("Fold equal lines"));
    fold->setChecked(m_model.isFolded());
    connect(fold, &QCheckBox::toggled, this, [this](bool on) {
        m_model.setFolded(on);
        arrangeColumns();
    });
    const auto arrow = [this](bool forward, const QString& tip) {
        auto* button = new QToolButton;
        button->setArrowType(forward ? Qt::DownArrow : Qt::UpArrow);
        button->setToolTip(tip);
        button->setAccessibleName(tip);
        connect(button, &QToolButton::clicked, this, [this, forward] { goToChange(forward); });
        return button;
    };
    auto* previous = arrow(false, tr("Previous change (Shift+F8)"));
    auto* next = arrow(true, tr("Next change (F8)"));
    auto* copy = new QToolButton;
    copy->setText(tr("Copy as Python"));
    copy->setToolTip(tr("Copy the graph after this step as a program that runs in PyTorch (Ctrl+Shift+C)"));
    connect(copy, &QToolButton::clicked, this, &TextWindow::copyRunnable);
    row->addWidget(m_counts, 1);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_layout, fold, previous, next, copy})
        row->addWidget(widget);
    return bar;
}

void TextWindow::setSideBySide(bool sideBySide) { m_layout->setCurrentIndex(sideBySide ? 1 : 0); }

void TextWindow::showText(const ShownText& what) {
    m_following = true;
    m_model.setLines(what.lines);
    m_following = false;
    const int changes = m_model.changeCount();
    m_counts->setText(what.comparison.before == what.comparison.after
                          ? counted(what.lines.size(), tr("line"), tr("lines"))
                      : changes ? counted(changes, tr("line changed"), tr("lines changed"))
                                : tr("no line changed"));
    m_pages->setCurrentIndex(1);
    arrangeColumns();
    followNode(m_selection.node());
    if (m_model.rowOf(m_selection.node()) < 0)
        if (const int row = m_model.nextChange(0); row >= 0) goToRow(row);
    m_shown = what.comparison;
    emit settled();
}

void TextWindow::arrangeColumns() {
    const bool sides = m_model.layout() == TextModel::Layout::SideBySide;
    auto* header = m_table->horizontalHeader();
    header->setMinimumSectionSize(18);
    const QFontMetrics metrics(m_table->font());
    // Measured on the longest line only: asking every row for its size would hold the window up on long texts.
    const int number = std::max(metrics.horizontalAdvance(QStringLiteral("00000")),
                                header->fontMetrics().horizontalAdvance(tr("Before"))) +
                       12;
    qsizetype longest = 0;
    for (int row = 0; row < m_model.rowCount(); ++row)
        for (int column : {static_cast<int>(TextModel::Second), static_cast<int>(TextModel::Fourth)})
            longest = std::max(longest, m_model.index(row, column).data().toString().size());
    const int text =
        metrics.horizontalAdvance(QString(longest + 2, QChar('0')));  // letters may have a fraction of a pixel
    for (int column = 0; column < TextModel::ColumnCount; ++column)
        header->setSectionResizeMode(column, QHeaderView::Fixed);
    header->setStretchLastSection(false);
    if (sides) {
        m_table->setColumnWidth(0, number);
        m_table->setColumnWidth(2, number);
        header->setSectionResizeMode(1, QHeaderView::Stretch);
        header->setSectionResizeMode(3, QHeaderView::Stretch);
        m_longest = text;
    } else {
        m_longest = 0;
        m_table->setColumnWidth(0, number);
        m_table->setColumnWidth(1, number);
        m_table->setColumnWidth(2, metrics.horizontalAdvance('0') + 12);
        m_table->setColumnWidth(3, std::max(text, 200));
        header->setStretchLastSection(text < m_table->viewport()->width());
    }
    arrangeScrolling();
}

/// Side by side the columns fill the window, and what is longer scrolls inside them, as in two panes.
void TextWindow::arrangeScrolling() {
    const int room =
        m_longest ? std::min(m_table->columnWidth(TextModel::Second), m_table->columnWidth(TextModel::Fourth)) : 0;
    m_sides->setPageStep(std::max(1, room));
    m_sides->setSingleStep(2 * QFontMetrics(m_table->font()).horizontalAdvance('0'));
    m_sides->setRange(0, std::max(0, m_longest - room));
    m_sides->setVisible(m_longest > room);
}

bool TextWindow::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_table->viewport() && m_longest > 0) {
        const auto* wheel = event->type() == QEvent::Wheel ? static_cast<QWheelEvent*>(event) : nullptr;
        const QPoint turned = wheel ? wheel->angleDelta() : QPoint();
        const int sideways = turned.x() != 0                                   ? turned.x()
                             : wheel && wheel->modifiers() & Qt::ShiftModifier ? turned.y()
                                                                               : 0;
        if (sideways != 0) {
            m_sides->setValue(m_sides->value() - sideways / 2);
            return true;
        }
    }
    return Window::eventFilter(watched, event);
}

void TextWindow::followNode(NodeKey node) {
    const int row = m_model.rowOf(node);
    const int now = m_table->currentIndex().row();
    if (row >= 0 && m_model.nodeAt(now) == node && m_table->selectionModel()->isRowSelected(now)) return;
    m_table->clearSelection();
    if (row >= 0) {
        m_following = true;
        m_table->selectRow(row);
        m_following = false;
        goToRow(row);
    }
}

/// Scrolls to the row without selecting it. It becomes the current row, so that getting the focus later changes no
/// row either.
void TextWindow::goToRow(int row) {
    m_following = true;
    m_table->selectionModel()->setCurrentIndex(m_model.index(row, 0), QItemSelectionModel::NoUpdate);
    m_table->scrollTo(m_model.index(row, 0), QAbstractItemView::PositionAtCenter);
    m_following = false;
    showWord(row);
}

/// Scrolls sideways as far as the first changed word of the row needs.
void TextWindow::showWord(int row) {
    const bool sides = m_model.layout() == TextModel::Layout::SideBySide;
    const QFontMetrics metrics(m_table->font());
    int left = -1, right = 0;
    for (const int column : {static_cast<int>(TextModel::Fourth), static_cast<int>(TextModel::Second)}) {
        if (left >= 0 || (column == TextModel::Second && !sides)) continue;
        const QModelIndex at = m_model.index(row, column);
        const auto marks = at.data(TextModel::MarksRole).value<QVector<MarkedRange>>();
        if (marks.isEmpty()) continue;
        const QString text = at.data().toString();
        left = metrics.horizontalAdvance(text.left(marks.front().start));
        right = left + metrics.horizontalAdvance(text.mid(marks.front().start, marks.front().length));
    }
    QScrollBar* bar = sides ? m_sides : m_table->horizontalScrollBar();
    const int room = sides ? m_sides->pageStep() : m_table->viewport()->width();
    if (left < 0) return;
    if (!sides) {
        left += m_table->columnViewportPosition(TextModel::Fourth) + bar->value();
        right += m_table->columnViewportPosition(TextModel::Fourth) + bar->value();
    }
    const int margin = 8 * metrics.horizontalAdvance('0');
    if (right + margin > bar->value() + room) bar->setValue(std::min(right + margin - room, left - margin));
    else if (left - margin < bar->value()) bar->setValue(right + margin <= room ? 0 : left - margin);
}

void TextWindow::goToChange(bool forward) {
    const QModelIndex now = m_table->currentIndex();
    const bool chosen = now.isValid() && m_table->selectionModel()->isRowSelected(now.row());
    const int row = m_model.nextChange(std::max(now.row(), 0) + (!chosen ? 0 : forward ? 1 : -1), forward);
    if (row < 0) return emit message(tr("No line changed."));
    m_table->selectRow(row);
    goToRow(row);
    if (m_model.nodeAt(row) != NodeKey::None)
        m_selection.setNode(m_model.nodeAt(row));  // it may have been the current row before
}

void TextWindow::copyRows() {
    QModelIndexList rows = m_table->selectionModel()->selectedRows();
    std::sort(rows.begin(), rows.end());
    QStringList lines;
    for (const QModelIndex& row : rows) lines << m_model.plainText(row.row());
    QApplication::clipboard()->setText(lines.join('\n'));
}

void TextWindow::copyRunnable() {
    if (!m_selection.hasPlace()) {
        emit message(tr("Nothing to copy yet: open a model first."));
        return;
    }
    m_controller.runnableText(m_selection.place(), [this](const QString& text) {
        QApplication::clipboard()->setText(text);
        emit message(tr("Copied %1 of Python.").arg(counted(text.count('\n'), tr("line"), tr("lines"))));
    });
}

}  // namespace cutaway::ui
