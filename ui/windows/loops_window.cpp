#include "ui/windows/loops_window.h"

#include <QComboBox>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSplitter>
#include <QTabWidget>
#include <QTextBlock>
#include <QVBoxLayout>

#include "ui/graph/graph_colors.h"
#include "ui/models/words.h"
#include "ui/windows/code_view.h"
#include "ui/windows/columns.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {
namespace {

QString nameOf(Listing listing) {
    switch (listing) {
        case Listing::Assembly: return LoopsWindow::tr("Assembly");
        case Listing::Ptx: return QStringLiteral("PTX");
        case Listing::Sass: return QStringLiteral("SASS");
    }
    return {};
}

}  // namespace

LoopsWindow::LoopsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_query(parts.controller.loopQuery()),
      m_model(*new LoopsModel(this)),
      m_summary(new QLabel),
      m_result(new QLabel),
      m_table(makeList(m_model, LoopsModel::SortRole, tr("Kernels and their nodes"))),
      m_sorted(static_cast<QSortFilterProxyModel*>(m_table->model())),
      m_kernel(new CodeView(Language::Python, tr("Kernel"), tr("What the chosen kernel computes"))),
      m_loops(new CodeView(Language::Python, tr("Loops"), tr("The loops of the chosen kernel"))),
      m_source(new CodeView(Language::Cpp, tr("C++"), tr("Generated C++"))),
      m_listing(new CodeView(Language::Cpp, tr("Machine code"), tr("What the compiler makes of the chosen kernel"))),
      m_plan(new QPlainTextEdit),
      m_check(new QPushButton(tr("Chec&k Plan"))),
      m_run(new QPushButton),
      m_restore(new QPushButton(tr("Compiler's Plan"))),
      m_steps(new QComboBox),
      m_listings(new QComboBox),
      m_why(new QLabel),
      m_code(new QTabWidget),
      m_areas(new QSplitter(Qt::Horizontal)),
      m_texts(new QSplitter(Qt::Horizontal)) {
    arrange();
    connectParts();
    showList();
    showState();
}

QWidget* LoopsWindow::makePlan() {
    m_plan->setAccessibleName(tr("Plan"));
    m_plan->setPlaceholderText(tr("How the chosen kernel runs, and why"));
    m_plan->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_plan->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_plan->setTabChangesFocus(true);
    m_plan->setToolTip(
        tr("A plan has lines, in any order:\norder x0 x1\nvectors rows 16 (or inner 16, or nothing)\nunroll_jam 4\n"
           "block 4096\nloop r0 r1 accumulators 4 (or stores: loop s0)\ncache r1\nprefetch 1\nsplit 8\n"
           "tile x0 16 (or: tile x0 16 in_registers)\nindices 32\natomic\n# a remark"));
    m_plan->installEventFilter(this);
    m_check->setToolTip(tr("Whether the plan computes this kernel; shows its loops and its C++"));
    m_run->setToolTip(tr("Run the compiled graph as it was planned and by this plan, and compare (Ctrl+Enter)"));
    m_restore->setToolTip(tr("Restore the compiler's plan"));
    m_result->setWordWrap(true);
    m_result->setTextFormat(Qt::PlainText);
    m_result->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_result->setObjectName(QStringLiteral("planResult"));
    auto* buttons = new QHBoxLayout;
    for (QPushButton* button : {m_check, m_run, m_restore}) {
        button->setAutoDefault(false);
        buttons->addWidget(button);
    }
    buttons->addStretch();
    auto* area = new QWidget;
    auto* column = new QVBoxLayout(area);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_plan, 1);
    column->addLayout(buttons);
    column->addWidget(m_result);
    return area;
}

QWidget* LoopsWindow::makeLoops() {
    m_steps->setObjectName(QStringLiteral("loweringSteps"));
    m_steps->setAccessibleName(tr("Step of lowering"));
    m_steps->setToolTip(tr("The loops after this step on the way from the kernel to the code"));
    m_steps->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    auto* line = new QHBoxLayout;
    line->addWidget(new QLabel(tr("After step")));
    line->addWidget(m_steps);
    line->addStretch();
    auto* area = new QWidget;
    auto* column = new QVBoxLayout(area);
    column->setContentsMargins(0, 4, 0, 0);
    column->addLayout(line);
    column->addWidget(m_loops, 1);
    return area;
}

QWidget* LoopsWindow::makeListing() {
    m_listings->setAccessibleName(tr("Form of the machine code"));
    m_listings->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_why->setWordWrap(true);
    m_why->setTextFormat(Qt::PlainText);
    m_why->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_why->setObjectName(QStringLiteral("whyNoListing"));
    auto* line = new QHBoxLayout;
    line->addWidget(m_listings);
    line->addStretch();
    auto* area = new QWidget;
    auto* column = new QVBoxLayout(area);
    column->setContentsMargins(0, 4, 0, 0);
    column->addLayout(line);
    column->addWidget(m_why);
    column->addWidget(m_listing, 1);
    return area;
}

void LoopsWindow::arrange() {
    m_summary->setWordWrap(true);
    m_summary->setObjectName(QStringLiteral("loopsSummary"));
    m_columns = new Columns(m_table->horizontalHeader(), objectName(), {LoopsModel::Kind});
    m_table->horizontalHeader()->setStretchLastSection(true);
    auto* meaning = new QSplitter(Qt::Vertical);
    meaning->addWidget(m_kernel);
    meaning->addWidget(makePlan());
    meaning->setChildrenCollapsible(false);
    m_code->setDocumentMode(true);
    m_code->addTab(makeLoops(), tr("Loops"));
    m_code->addTab(m_source, tr("C++"));
    m_code->addTab(makeListing(), tr("Machine Code"));
    m_texts->addWidget(meaning);
    m_texts->addWidget(m_code);
    m_texts->setSizes({500, 500});
    m_areas->addWidget(m_table);
    m_areas->addWidget(m_texts);
    m_areas->setSizes({200, 600});
    m_areas->setStretchFactor(1, 1);
    for (QSplitter* splitter : {m_areas, m_texts}) splitter->setChildrenCollapsible(false);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_summary);
    column->addWidget(m_areas, 1);
    setWidget(page);
    setFocusProxy(m_table);
}

void LoopsWindow::connectParts() {
    connect(m_check, &QPushButton::clicked, this, [this] { m_query.check(m_plan->toPlainText()); });
    connect(m_run, &QPushButton::clicked, this, &LoopsWindow::run);
    connect(m_restore, &QPushButton::clicked, this, [this] {
        m_plan->setPlainText(m_chosenPlan);
        m_query.check(m_chosenPlan);
    });
    connect(m_plan, &QPlainTextEdit::textChanged, this, &LoopsWindow::showState);
    connect(m_steps, &QComboBox::currentIndexChanged, this, &LoopsWindow::showStep);
    // Not when the current row changes: getting the focus makes a row current, although the user chose none.
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &LoopsWindow::chooseRow);
    connect(m_listings, &QComboBox::activated, this, [this] {
        m_listed.reset();
        wantListing();
    });
    connect(m_source, &CodeView::lineChosen, this, &LoopsWindow::chooseLine);
    connect(&m_controller.kernelQuery(), &KernelQuery::changed, this, &LoopsWindow::markNode);
    connect(m_code, &QTabWidget::currentChanged, this, &LoopsWindow::wantListing);
    connect(&m_query, &LoopQuery::listingChanged, this, &LoopsWindow::showListing);
    connect(&m_query, &LoopQuery::listed, this, &LoopsWindow::showList);
    connect(&m_query, &LoopQuery::formsChanged, this, &LoopsWindow::showForms);
    connect(&m_query, &LoopQuery::changed, this, &LoopsWindow::showState);
    connect(&m_selection, &Selection::nodeChanged, this, &LoopsWindow::showNode);
    connect(&m_selection, &Selection::placeChanged, this, &LoopsWindow::follow);
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool onScreen) {
        m_onScreen = onScreen;
        follow();
    });
    connect(&m_controller, &SessionController::timed, this, [this](RunId run) {
        if (m_query.run() == run) m_query.list(run);
    });
    for (const auto any : {&SessionController::modelOpened, &SessionController::modelClosed})
        connect(&m_controller, any, this, &LoopsWindow::showState);
}

void LoopsWindow::follow() {
    if (!m_selection.hasPlace() || !m_onScreen) return;
    const RunId run = m_selection.place().run;
    if (m_query.run() != run && m_controller.runOf(run)) m_query.list(run);
}

void LoopsWindow::showList() {
    m_following = true;
    m_model.setKernels(m_query.kernels());
    m_columns->setRoom(LoopsModel::Time, m_model.isTimed());
    m_table->resizeColumnsToContents();
    m_following = false;
    const Run* run = m_query.run() ? m_controller.runOf(*m_query.run()) : nullptr;
    if (!run)
        m_summary->setText(
            tr("Shows, side by side, what each kernel of the compiled model computes, how it runs and why, its loops "
               "and its C++.\n\nCompile the model first (Ctrl+B)."));
    else if (!m_query.problem().isEmpty()) m_summary->setText(m_query.problem());
    else
        m_summary->setText(run->title() + QStringLiteral(" · ") +
                           counted(m_model.rowCount(), tr("kernel"), tr("kernels")) +
                           (m_model.isTimed() ? QString() : tr(" · times: Run > Time Generated Code")));
    if (m_model.rowCount() == 0) return;
    int row = m_model.rowOf(m_query.kernel());
    if (row < 0) row = m_model.rowOf(m_selection.node());
    const bool gone = m_model.rowOf(m_query.kernel()) < 0;
    // A list that is new moves nobody, even where it has the focus.
    m_following = true;
    m_table->selectRow(m_sorted->mapFromSource(m_model.index(std::max(row, 0), 0)).row());
    m_following = false;
    if (gone) m_query.choose(QString::fromStdString(m_model.at(std::max(row, 0)).name));
}

void LoopsWindow::chooseRow() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (m_following || !shown.isValid()) return;
    const LoopKernel& kernel = m_model.at(m_sorted->mapToSource(shown).row());
    m_query.choose(QString::fromStdString(kernel.name));
    // Only where the user chose it.
    if (!m_table->hasFocus() || kernel.nodes.empty() ||
        std::find(kernel.nodes.begin(), kernel.nodes.end(), m_selection.node()) != kernel.nodes.end())
        return;
    m_selection.setNode(kernel.nodes.back());
}

/// Also how a kernel chosen in the Kernels window is chosen here.
void LoopsWindow::showNode(NodeKey node) {
    const int row = m_model.rowOf(node);
    if (row < 0) return;
    m_following = true;
    m_table->selectRow(m_sorted->mapFromSource(m_model.index(row, 0)).row());
    m_following = false;
    m_query.choose(QString::fromStdString(m_model.at(row).name));
    markNode();
}

void LoopsWindow::showForms() {
    const auto& forms = m_query.forms();
    m_kernel->setCode(forms ? QString::fromStdString(forms->kernel) : QString());
    m_source->setCode(forms ? QString::fromStdString(forms->source) : QString());
    markNode();
    m_code->setTabText(m_code->indexOf(m_source), forms && forms->target == Target::Cuda ? tr("CUDA C++") : tr("C++"));
    // A plan that is being edited stays as the user wrote it.
    if (!forms || m_planOf != m_query.kernel()) {
        m_chosenPlan = forms ? QString::fromStdString(forms->plan) : QString();
        m_planOf = forms ? m_query.kernel() : QString();
        m_plan->setPlainText(m_chosenPlan);
    }
    const int step = m_steps->currentIndex();
    {
        const QSignalBlocker quiet(m_steps);
        m_steps->clear();
        if (forms)
            for (const LoopForm& form : forms->steps) m_steps->addItem(QString::fromStdString(form.name));
        m_steps->setCurrentIndex(step >= 0 && step < m_steps->count() ? step : m_steps->count() - 1);
    }
    showStep();
    const std::span<const Listing> listings = listingsOf(forms ? forms->target : Target::Cpu);
    if (m_listings->count() != static_cast<int>(listings.size())) {
        m_listings->clear();
        for (const Listing listing : listings) m_listings->addItem(nameOf(listing), static_cast<int>(listing));
    }
    m_listing->setCode({});
    m_why->hide();
    wantListing();
}

void LoopsWindow::wantListing() {
    if (m_code->currentIndex() != m_code->count() - 1 || !m_query.forms() || m_listed == m_query.forms()) return;
    m_listed = m_query.forms();
    m_query.want(static_cast<Listing>(m_listings->currentData().toInt()));
}

void LoopsWindow::showListing() {
    m_listing->setCode(m_query.isListed() ? m_query.listing() : QString());
    m_why->setText(m_query.listing());
    m_why->setVisible(!m_query.isListed());
}

void LoopsWindow::showStep() {
    const auto& forms = m_query.forms();
    const int step = m_steps->currentIndex();
    m_loops->setCode(forms && step >= 0 ? QString::fromStdString(forms->steps[static_cast<size_t>(step)].text)
                                        : QString());
}

void LoopsWindow::run() {
    if (m_query.isRunning()) m_query.stop();
    else m_query.tryPlan(m_plan->toPlainText());
}

void LoopsWindow::showState() {
    const bool running = m_query.isRunning(), some = m_query.forms() != nullptr;
    m_plan->setEnabled(some);
    m_check->setEnabled(some && !running);
    m_run->setText(running ? tr("Stop (Esc)") : tr("Run Both Plans"));
    m_run->setEnabled(some);
    m_restore->setEnabled(some && !running && m_plan->toPlainText() != m_chosenPlan);
    if (sender() != m_plan) showSaid();
    emit activityChanged();
}

/// What was said of the plan; what is wrong with it in red, and its line marked.
void LoopsWindow::showSaid() {
    const bool wrong = m_query.isWrong();
    QString said = m_query.said();
    static const QRegularExpression kWhose(QStringLiteral("^the plan of \\w+: "));
    if (wrong) said.remove(kWhose);
    const int line = wrong ? wrongLine() : -1;
    if (line >= 0 && !said.startsWith(QStringLiteral("line "))) said = tr("line %1: %2").arg(line + 1).arg(said);
    QPalette own = palette();
    if (wrong) own.setColor(QPalette::WindowText, GraphColors::of(own)[Change::Removed].line);
    m_result->setPalette(own);
    m_result->setText(said);
    m_result->setVisible(!said.isEmpty());
    if (line < 0) return;
    QTextCursor cursor(m_plan->document()->findBlockByNumber(line));
    cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
    m_plan->setTextCursor(cursor);
}

/// The line that the error names by its number, or by its first word: "vectors rows 8" where vectors have 16 lanes. -1:
/// none.
int LoopsWindow::wrongLine() const {
    static const QRegularExpression kLine(QStringLiteral("^line (\\d+): ")), kWord(QStringLiteral("\\w+"));
    if (const auto named = kLine.match(m_query.said()); named.hasMatch()) return named.captured(1).toInt() - 1;
    for (auto word = kWord.globalMatch(m_query.said()); word.hasNext();) {
        const QString said = word.next().captured();
        for (int line = 0; line < m_plan->document()->blockCount(); ++line) {
            const QString first =
                m_plan->document()->findBlockByNumber(line).text().trimmed().section(QChar(' '), 0, 0);
            if (!first.isEmpty() && first != QLatin1String("#") && said.startsWith(first)) return line;
        }
    }
    return -1;
}

bool LoopsWindow::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_plan && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        if (enter && key->modifiers().testFlag(Qt::ControlModifier)) {
            if (m_run->isEnabled() && !m_query.isRunning()) run();
            return true;
        }
    }
    return Window::eventFilter(watched, event);
}

std::optional<Activity> LoopsWindow::activity() const {
    if (!m_query.isRunning()) return {};
    Activity now;
    now.tag = QString::fromLatin1(row().name);
    now.doing = tr("Running %1 by another plan").arg(m_query.kernel());
    now.since = m_query.since();
    return now;
}

void LoopsWindow::stopActivity() { m_query.stop(); }

/// The list stands beside the texts where these have room for their lines then, else above them.
void LoopsWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    const auto wanted = width() > 140 * m_plan->fontMetrics().averageCharWidth() ? Qt::Horizontal : Qt::Vertical;
    if (m_areas->orientation() == wanted) return;
    m_areas->setOrientation(wanted);
    m_areas->setSizes(wanted == Qt::Horizontal ? QList<int>{200, 600} : QList<int>{100, 300});
}

std::span<const KeyHint> LoopsWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Run the kernel by the edited plan"), QT_TR_NOOP("Ctrl+Enter")},
        {QT_TR_NOOP("Go to the node of a line of C++"), QT_TR_NOOP("click, Enter")},
    };
    return kKeys;
}

}  // namespace cutaway::ui
