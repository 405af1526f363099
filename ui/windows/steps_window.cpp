#include "ui/windows/steps_window.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QScrollBar>
#include <QShortcut>
#include <QStackedWidget>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/number_cells.h"
#include "ui/models/words.h"
#include "ui/windows/bisect_strip.h"
#include "ui/windows/columns.h"

namespace cutaway::ui {

StepsWindow::StepsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_stepper(parts.stepper),
      m_model(*new StepsModel(this)),
      m_filtered(new StepsFilter(this)),
      m_run(new QComboBox),
      m_filter(new QLineEdit),
      m_hidden(new QLabel),
      m_empty(new QLabel),
      m_running(new QLabel),
      m_tree(new QTreeView),
      m_pages(new QStackedWidget) {
    m_filtered->setSourceModel(&m_model);
    m_tree->setModel(m_filtered);
    m_tree->setUniformRowHeights(true);
    m_tree->setAlternatingRowColors(true);
    m_tree->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_tree->setContextMenuPolicy(Qt::CustomContextMenu);
    m_tree->setAccessibleName(tr("Steps of the run"));
    m_tree->header()->setStretchLastSection(false);
    m_tree->header()->setSectionResizeMode(StepsModel::Name, QHeaderView::Stretch);
    m_tree->header()->setSectionResizeMode(StepsModel::Changes, QHeaderView::ResizeToContents);
    const QFontMetrics digits(numberFont().resolve(m_tree->font()));
    const auto sized = [&](int column, const char* widest) {
        const QString title = m_model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        const int size = 14 + std::max(digits.horizontalAdvance(QString::fromLatin1(widest)),
                                       m_tree->header()->fontMetrics().horizontalAdvance(title));
        m_tree->header()->resizeSection(column, size);
        return size;
    };
    m_nodes = sized(StepsModel::Nodes, "00000");
    m_time = sized(StepsModel::Time, "00.0 ms");
    // What a pass changed is as wide as it is long, and names may not pay for it.
    connect(m_tree->header(), &QHeaderView::sectionResized, this, [this](int column, int before, int now) {
        if (column == StepsModel::Changes && before != 0 && now != 0) giveRoom();
    });
    m_tree->header()->setMinimumSectionSize(40);
    m_columns = new Columns(m_tree->header(), objectName());
    m_tree->setIndentation(14);
    m_run->setAccessibleName(tr("Run"));
    m_run->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_run->setMinimumContentsLength(12);
    m_filter->setPlaceholderText(tr("Filter passes, rules, nodes"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setAccessibleName(tr("Filter passes, rules, nodes"));
    m_hidden->hide();
    m_running->setText(tr("Steps can be opened when the compile ends; Esc stops it and keeps the finished steps."));
    m_running->setWordWrap(true);
    m_running->hide();
    m_soon.setSingleShot(true);
    m_soon.setInterval(100);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(16);
    m_empty->setText(tr(
        "Every pass that the compiler runs is listed here, with what it changed.\n\nOpen a model (Ctrl+O) and compile it (Ctrl+B)."));

    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    column->setSpacing(4);
    auto* strip = new BisectStrip(m_controller, m_selection);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_run, m_running, m_filter, m_hidden, strip})
        column->addWidget(widget);
    column->addWidget(m_tree, 1);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    setFocusProxy(m_tree);

    connect(m_run, &QComboBox::activated, this, [this] {
        const RunId run = m_run->currentData().toInt();
        if (run == StepsModel::kUnderWay) {
            m_controller.awaitCompile();
            return showRun(run);
        }
        m_selection.setPlace({run, -1, -1});
    });
    connect(m_filter, &QLineEdit::textChanged, this, &StepsWindow::filter);
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& now) {
        if (m_following) return;
        if (m_model.run() == StepsModel::kUnderWay && now.isValid()) emit message(m_running->text());
        if (const auto place = m_model.placeOf(m_filtered->mapToSource(now))) m_stepper.show(*place);
    });
    m_tree->viewport()->installEventFilter(this);
    // When the tree has laid out what has come, gone or moved.
    for (const auto moved : {&QTreeView::expanded, &QTreeView::collapsed})
        connect(m_tree, moved, this, &StepsWindow::spanRewrites, Qt::QueuedConnection);
    const auto* bar = m_tree->verticalScrollBar();
    connect(bar, &QScrollBar::valueChanged, this, &StepsWindow::spanRewrites, Qt::QueuedConnection);
    connect(bar, &QScrollBar::rangeChanged, this, &StepsWindow::spanRewrites, Qt::QueuedConnection);
    connect(m_tree, &QTreeView::customContextMenuRequested, this, &StepsWindow::showMenu);
    auto* copy = new QShortcut(QKeySequence::Copy, m_tree);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &StepsWindow::copyRows);
    connect(&m_model, &StepsModel::rewritesWanted, this, [this](RunId id, int step) {
        const Run* run = m_controller.runOf(id);
        if (run && step < static_cast<int>(run->rewrites.size()))
            m_model.setRewrites(step, run->rewrites[static_cast<size_t>(step)]);
    });
    connect(&m_model, &StepsModel::passToggled, this, &StepsWindow::togglePass);
    connect(&parts.controller, &SessionController::modelOpened, this, [this] {
        m_run->clear();
        m_filter->clear();  // of another model
        m_model.clear();
        m_empty->setText(tr("The model is open.\n\nCompile it with Run > Compile (Ctrl+B) to see every pass here."));
        m_pages->setCurrentIndex(0);
    });
    connect(&parts.controller, &SessionController::compilingChanged, this, &StepsWindow::followCompile);
    connect(&m_soon, &QTimer::timeout, this, &StepsWindow::addLatestSteps);
    connect(&parts.controller, &SessionController::compiled, this, [this](RunId run) {
        m_run->addItem(m_controller.runOf(run)->title(), run);
        if (m_model.run() == StepsModel::kUnderWay || !m_controller.runOf(m_model.run())) showRun(run);
    });
    connect(&parts.selection, &Selection::placeChanged, this, &StepsWindow::follow);
    connect(&parts.selection, &Selection::marksChanged, this,
            [this] { m_model.setMarks(m_selection.markA(), m_selection.markB()); });
}

/// A compile that begins is shown unless the user turns to another run; if it leaves no run, the one before is shown
/// again.
void StepsWindow::followCompile() {
    const Run* run = m_controller.compiling();
    const int at = m_run->findData(StepsModel::kUnderWay);
    if (!run) {
        m_soon.stop();
        if (at >= 0) m_run->removeItem(at);
        if (m_model.run() != StepsModel::kUnderWay) return;
        m_running->hide();
        m_model.clear();
        m_pages->setCurrentIndex(0);
        showRun(m_selection.place().run);
    } else if (at < 0) {
        m_run->addItem(tr("%1, under way").arg(run->title()), StepsModel::kUnderWay);
        showRun(StepsModel::kUnderWay);
    } else if (!m_soon.isActive()) {
        m_soon.start();
    }
}

void StepsWindow::addLatestSteps() {
    const Run* run = m_controller.compiling();
    if (!run || m_model.run() != StepsModel::kUnderWay) return;
    const bool atEnd = m_tree->verticalScrollBar()->value() == m_tree->verticalScrollBar()->maximum();
    m_model.addSteps({run->steps.begin() + static_cast<std::ptrdiff_t>(m_model.steps().size()), run->steps.end()});
    if (!m_filtered->isEmpty()) filter(m_filter->text());
    expandChanges();
    if (atEnd) m_tree->scrollToBottom();
}

void StepsWindow::showRun(RunId run) {
    const Run* found = run == StepsModel::kUnderWay ? m_controller.compiling() : m_controller.runOf(run);
    if (!found) return;
    m_following = true;
    m_run->setCurrentIndex(m_run->findData(run));
    m_model.setRun(run, found->steps);
    m_running->setVisible(run == StepsModel::kUnderWay);
    m_model.setMarks(m_selection.markA(), m_selection.markB());
    expandChanges();
    m_pages->setCurrentIndex(1);
    m_following = false;
}

void StepsWindow::expandChanges() {
    for (int row = 0; row < m_filtered->rowCount(); ++row) {
        const QModelIndex at = m_filtered->index(row, 0);
        m_tree->expand(at);
        if (at.data(StepsModel::KindRole).toInt() != static_cast<int>(StepsModel::Kind::Graph)) continue;
        for (int stage = 0; stage < m_filtered->rowCount(at); ++stage) m_tree->expand(m_filtered->index(stage, 0, at));
    }
}

void StepsWindow::follow() {
    if (!m_selection.hasPlace()) return;
    const Place place = m_selection.place();
    if (place.run != m_model.run()) showRun(place.run);
    if (const QModelIndex pass = m_model.indexOf(Place{place.run, place.step, -1});
        place.rewrites > 0 && m_model.canFetchMore(pass))
        m_model.fetchMore(pass);
    const bool chosen =
        m_chosen.size() > 1 && m_selection.comparison() == Comparison{m_chosen.front(), m_chosen.back()};
    if (!chosen) m_chosen.clear();
    const QModelIndex at = m_filtered->mapFromSource(m_model.indexOf(place));
    if (!at.isValid()) return;
    m_following = true;
    // Not by the view: with Shift or Ctrl held, as in Shift+F11, that would extend the selection.
    m_tree->selectionModel()->setCurrentIndex(at, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    m_tree->scrollTo(at);
    m_following = false;
}

void StepsWindow::markCurrent(bool asB) {
    if (!m_selection.hasPlace()) return;
    const Place place = m_selection.place();
    asB ? m_selection.setMarkB(place) : m_selection.setMarkA(place);
    const bool both = m_selection.markA() && m_selection.markB();
    emit message(
        both ? tr("Comparing A with B.")
             : tr("Marked as %1; mark another step as %2 to compare them.").arg(asB ? "B" : "A", asB ? "A" : "B"));
}

Result<StepPosition> StepsWindow::select(const QString& step) {
    CT_TRY(const StepPosition found, findStep(m_model.steps(), step.toStdString()));
    m_selection.setPlace({m_model.run(), found.index, -1});
    return found;
}

void StepsWindow::togglePass(const QString& pass, bool enabled) {
    const Run* run = m_controller.runOf(m_model.run());
    if (!run) return;
    // A pass that runs twice ("name#2") is one pass to the compiler.
    emit message(enabled ? tr("Compiling with %1").arg(pass)
                         : tr("Compiling without %1; the difference from the previous run will be shown").arg(pass));
    m_controller.setEnabled(run->id, pass.section('#', 0, 0).trimmed(), enabled);
}

void StepsWindow::setFilter(const QString& text) {
    show();
    raise();
    m_filter->setText(text);
}

void StepsWindow::filter(const QString& text) {
    const Run* run = m_controller.runOf(m_model.run());
    m_filtered->setText(text, run ? run->rewrites : std::vector<std::vector<RewriteInfo>>{});
    const auto passes = static_cast<int>(m_model.steps().size());
    int shown = 0;
    for (const StepInfo& step : m_model.steps())
        shown += m_filtered->matches(QString::fromStdString(step.name)) || m_filtered->steps().contains(step.index);
    m_hidden->setVisible(!m_filtered->isEmpty());
    QString said = tr("%1 of %2 passes hidden by the filter").arg(passes - shown).arg(passes);
    if (m_filtered->rewriteCount() > 0)
        said += tr("; %1").arg(counted(m_filtered->rewriteCount(), tr("rewrite matches"), tr("rewrites match")));
    m_hidden->setText(said);
    expandChanges();
    if (m_filtered->isEmpty()) return;
    // Rows of rewrites are made when they are needed; more than anybody reads stay folded in their passes.
    constexpr int kOpened = 300;
    for (int step : m_filtered->steps()) {
        const QModelIndex pass = m_model.indexOf(Place{m_model.run(), step, -1});
        if (m_filtered->rewriteCount() > kOpened) break;
        if (m_model.canFetchMore(pass)) m_model.fetchMore(pass);
        const QModelIndex at = m_filtered->mapFromSource(pass);
        m_tree->expand(at.parent());
        m_tree->expand(at);
    }
}

/// Rewrites have a name and nothing in the other columns: their rule and node get all the room. Only those on the
/// screen are told so to the tree, which looks every one of them up for every row that it paints.
void StepsWindow::spanRewrites() {
    QList<QPersistentModelIndex> shown;
    const QRect area = m_tree->viewport()->rect();
    for (QModelIndex at = m_tree->indexAt(area.topLeft());
         at.isValid() && m_tree->visualRect(at).top() <= area.bottom(); at = m_tree->indexBelow(at))
        if (at.data(StepsModel::KindRole).toInt() == static_cast<int>(StepsModel::Kind::Rewrite))
            shown << QPersistentModelIndex(at.siblingAtColumn(0));
    for (const QPersistentModelIndex& gone : m_spanned)
        if (gone.isValid() && !shown.contains(gone)) m_tree->setFirstColumnSpanned(gone.row(), gone.parent(), false);
    for (const QPersistentModelIndex& now : shown)
        if (!m_spanned.contains(now)) m_tree->setFirstColumnSpanned(now.row(), now.parent(), true);
    m_spanned = shown;
}

void StepsWindow::showMenu(QPoint at) {
    const auto place = m_model.placeOf(m_filtered->mapToSource(m_tree->indexAt(at)));
    QMenu menu;
    if (place) {
        menu.addAction(tr("Mark as A"), this, [this, place] { m_selection.setMarkA(*place); });
        menu.addAction(tr("Mark as B"), this, [this, place] { m_selection.setMarkB(*place); });
    }
    if (m_selection.markA() || m_selection.markB())
        menu.addAction(tr("Clear marks"), this, [this] {
            m_selection.setMarkA({});
            m_selection.setMarkB({});
        });
    menu.addAction(tr("Copy rows"), this, &StepsWindow::copyRows);
    menu.exec(m_tree->viewport()->mapToGlobal(at));
}

/// Names come first: in a narrow window the numbers go, and their tool tips still tell them.
void StepsWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    giveRoom();
}

void StepsWindow::giveRoom() {
    const int letter = m_tree->fontMetrics().averageCharWidth();
    // Stage, track, check mark and twenty letters of a pass.
    const int names = 20 * letter + 4 * m_tree->indentation();
    const QAbstractItemView* view = m_tree;  // QTreeView hides what it overrides
    const int wide = view->sizeHintForColumn(StepsModel::Changes);
    // Fewer letters than that are not a name; what changed is in the tool tip, too.
    constexpr int kFewest = 12;
    const bool changes = width() - wide >= kFewest * letter + 4 * m_tree->indentation();
    const int left = width() - names - (changes ? wide : 0);
    m_columns->setRoom(StepsModel::Changes, changes);
    m_columns->setRoom(StepsModel::Time, width() >= 50 * letter && left >= m_time);
    m_columns->setRoom(StepsModel::Nodes, width() >= 60 * letter && left >= m_time + m_nodes);
}

void StepsWindow::copyRows() {
    QModelIndexList rows = m_tree->selectionModel()->selectedRows();
    std::sort(rows.begin(), rows.end());
    QStringList lines;
    for (const QModelIndex& row : rows) lines << m_model.lineOf(m_filtered->mapToSource(row));
    QApplication::clipboard()->setText(lines.join('\n'));
}

}  // namespace cutaway::ui
