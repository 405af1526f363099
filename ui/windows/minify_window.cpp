#include "ui/windows/minify_window.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

#include "ui/graph/graph_view.h"
#include "ui/models/words.h"
#include "ui/session/kept_requests.h"
#include "ui/windows/minify_settings.h"
#include "ui/windows/plot_view.h"

namespace cutaway::ui {
namespace {

constexpr int kMostDrawn = 400;  // nodes; a larger graph is read as text

QPlainTextEdit* makeReadOnly(const QString& name) {
    auto* text = new QPlainTextEdit;
    text->setReadOnly(true);
    text->setAccessibleName(name);
    text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    text->setLineWrapMode(QPlainTextEdit::NoWrap);
    text->setTabChangesFocus(true);
    return text;
}

}  // namespace

MinifyWindow::MinifyWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_search(parts.controller.minifySearch()),
      m_check(new QComboBox),
      m_backend(new QComboBox),
      m_command(new QLineEdit),
      m_folder(new QLineEdit),
      m_signature(new QLineEdit),
      m_settings(new MinifySettings),
      m_browse(new QPushButton(tr("Choose…"))),
      m_start(new QPushButton),
      m_afresh(new QPushButton(tr("Start &Afresh"))),
      m_open(new QPushButton(tr("Open Resul&t"))),
      m_back(new QPushButton),
      m_summary(new QLabel),
      m_plot(new PlotView(tr("Nodes left after each trial"))),
      m_graph(new GraphView),
      m_text(makeReadOnly(tr("Smallest graph so far"))),
      m_log(makeReadOnly(tr("What was tried"))),
      m_areas(new QSplitter(Qt::Horizontal)) {
    m_summary->setWordWrap(true);
    m_summary->setTextFormat(Qt::PlainText);
    m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_summary->setObjectName(QStringLiteral("minifySummary"));
    m_plot->setHint(tr("Nodes against trials, once a search goes on"));
    auto* best = new QTabWidget;
    best->addTab(m_graph, tr("Smallest Graph"));
    best->addTab(m_text, tr("Its Text"));
    best->addTab(m_log, tr("Log"));
    auto* asked = new QWidget;
    auto* column = new QVBoxLayout(asked);
    column->setContentsMargins(0, 0, 4, 0);
    column->addWidget(makeForm());
    column->addWidget(m_summary);
    column->addStretch();
    // A low window scrolls: squeezed fields cannot be read.
    auto* left = new QScrollArea;
    left->setWidget(asked);
    left->setWidgetResizable(true);
    left->setFrameShape(QFrame::NoFrame);
    left->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* right = new QSplitter(Qt::Vertical);
    right->addWidget(best);
    right->addWidget(m_plot);
    right->setStretchFactor(0, 2);
    right->setStretchFactor(1, 1);
    m_areas->addWidget(left);
    m_areas->addWidget(right);
    m_areas->setStretchFactor(1, 1);
    m_areas->setChildrenCollapsible(false);
    m_areas->setContentsMargins(4, 6, 4, 4);
    setWidget(m_areas);
    setFocusProxy(m_check);
    connectParts();
    followCheck();
    showState();
    showBest();
}

QWidget* MinifyWindow::makeForm() {
    m_check->addItem(tr("A pass, the scheduler or the run fails"), static_cast<int>(MinifyCheck::Crash));
    m_check->addItem(tr("The numbers are wrong"), static_cast<int>(MinifyCheck::Numbers));
    m_check->addItem(tr("A NaN or infinity appears"), static_cast<int>(MinifyCheck::Nan));
    m_check->addItem(tr("A command fails"), static_cast<int>(MinifyCheck::Command));
    m_backend->addItem(tr("Interpreter"), static_cast<int>(Backend::Reference));
    m_backend->addItem(tr("Compiled for the CPU"), static_cast<int>(Backend::Cpu));
    m_command->setPlaceholderText(tr("Shell command; {} stands for the graph as a Python file"));
    m_signature->setPlaceholderText(tr("The failure of the whole graph"));
    m_signature->setToolTip(
        tr("The failure to keep: kind=…; pass=…; op=…; message=…. Parts left out count as any; leave "
           "empty to detect it when the search starts."));
    m_folder->setToolTip(tr("A search that was stopped goes on from its folder"));
    auto* form = new QWidget;
    auto* rows = new QFormLayout(form);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setRowWrapPolicy(QFormLayout::WrapLongRows);
    rows->addRow(tr("Fa&ils when"), m_check);
    rows->addRow(tr("Runs &on"), m_backend);
    rows->addRow(tr("&Command"), m_command);
    auto* folder = new QHBoxLayout;
    folder->addWidget(m_folder, 1);
    folder->addWidget(m_browse);
    auto* folderLabel = new QLabel(tr("Fo&lder"));
    folderLabel->setBuddy(m_folder);
    rows->addRow(folderLabel, folder);
    rows->addRow(tr("Si&gnature"), m_signature);
    auto* buttons = new QHBoxLayout;
    for (QPushButton* button : {m_start, m_afresh, m_open, m_back, m_browse}) button->setAutoDefault(false);
    for (QPushButton* button : {m_start, m_afresh, m_open}) buttons->addWidget(button);
    buttons->addStretch();
    rows->addRow(buttons);
    m_back->hide();
    rows->addRow(m_back);
    rows->addRow(m_settings);
    return form;
}

void MinifyWindow::connectParts() {
    connect(m_start, &QPushButton::clicked, this, [this] { m_search.isRunning() ? m_search.stop() : start(); });
    connect(m_afresh, &QPushButton::clicked, this, [this] {
        m_restart = true;
        start();
        m_restart = false;
    });
    connect(m_open, &QPushButton::clicked, this, &MinifyWindow::openResult);
    connect(m_back, &QPushButton::clicked, this, [this] {
        if (m_opened) m_controller.open(m_opened->modelPath, m_opened->modelGraph);
    });
    connect(&m_controller, &SessionController::modelOpened, this, &MinifyWindow::followModel);
    connect(m_browse, &QPushButton::clicked, this, &MinifyWindow::chooseFolder);
    connect(m_check, &QComboBox::currentIndexChanged, this, &MinifyWindow::followCheck);
    connect(&m_search, &MinifySearch::changed, this, &MinifyWindow::showState);
    connect(&m_search, &MinifySearch::bestChanged, this, &MinifyWindow::showBest);
    for (const auto any : {&SessionController::modelOpened, &SessionController::modelClosed})
        connect(&m_controller, any, this, &MinifyWindow::showState);
}

void MinifyWindow::followCheck() {
    const auto check = static_cast<MinifyCheck>(m_check->currentData().toInt());
    m_command->setEnabled(check == MinifyCheck::Command);
    m_backend->setEnabled(check != MinifyCheck::Command);
    m_settings->follow(check);
}

void MinifyWindow::prepare() {
    proposeFolder();
    m_check->setFocus();
}

void MinifyWindow::proposeFolder() {
    if (!m_folder->text().trimmed().isEmpty() || !m_controller.model()) return;
    const QFileInfo file(m_controller.path());
    m_folder->setText(file.absolutePath() + '/' + file.completeBaseName() + QStringLiteral(".minified"));
}

void MinifyWindow::openResult() {
    if (!m_search.report()) return;
    const MinifyReport& report = *m_search.report();
    m_opened = {QString::fromStdString(report.graph), m_controller.path(), m_controller.graph(), report.request};
    m_controller.open(m_opened->path);
}

/// Folder and signature are those of another model's search. The result compiles as it fails.
void MinifyWindow::followModel() {
    m_folder->clear();
    m_signature->clear();
    m_signature->setPlaceholderText(tr("The failure of the whole graph"));
    proposeFolder();
    const bool result = m_opened && QFileInfo(m_opened->path) == QFileInfo(m_controller.path());
    if (!result) m_opened.reset();
    m_back->setVisible(result);
    if (!result) return;
    rememberWholeRequest(m_controller.modelKey(), m_opened->request);
    m_back->setText(tr("Bac&k to %1").arg(shortPath(m_opened->modelPath)));
    m_back->setToolTip(m_opened->modelPath);
    const QString words = optionWords(m_opened->request).join(QStringLiteral(", "));
    emit message(words.isEmpty()
                     ? tr("Opened the result. Compile it with Ctrl+B.")
                     : tr("Opened the result, which fails with: %1. Ctrl+B takes these options.").arg(words));
}

void MinifyWindow::chooseFolder() {
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder for the result"), m_folder->text());
    if (!folder.isEmpty()) m_folder->setText(folder);
}

MinifyOptions MinifyWindow::options() const {
    MinifyOptions options;
    options.check = static_cast<MinifyCheck>(m_check->currentData().toInt());
    options.backend = static_cast<Backend>(m_backend->currentData().toInt());
    options.command = m_command->text().trimmed().toStdString();
    options.signature = m_signature->text().trimmed().toStdString();
    options.folder = m_folder->text().trimmed().toStdString();
    options.restart = m_restart;
    m_settings->fill(options, m_selection.hasPlace() ? std::optional(m_selection.place()) : std::nullopt);
    // As the run that is looked at was compiled.
    if (m_selection.hasPlace())
        if (const Run* run = m_controller.runOf(m_selection.place().run)) options.request = run->options;
    return options;
}

void MinifyWindow::start() {
    if (const QString wrong = m_settings->problem(); !wrong.isEmpty()) return m_summary->setText(wrong);
    proposeFolder();
    m_search.start(options());
}

std::optional<Activity> MinifyWindow::activity() const {
    if (!m_search.isRunning()) return {};
    Activity now;
    now.tag = QString::fromLatin1(row().name);
    now.doing = tr("Minifying");
    now.progress = summary().section('\n', 0, 0);
    now.since = m_search.since();
    return now;
}

void MinifyWindow::stopActivity() { m_search.stop(); }

QString MinifyWindow::summary() const {
    const MinifyState& state = m_search.state();
    if (!m_search.problem().isEmpty()) return m_search.problem();
    if (m_search.report()) {
        const MinifyReport& report = *m_search.report();
        QStringList lines;
        lines << tr("%1 nodes became %2 in %3 trials, %4 s.")
                     .arg(report.nodesBefore)
                     .arg(report.nodes)
                     .arg(report.trials)
                     .arg(report.seconds, 0, 'f', 1);
        lines << tr("Failure: %1").arg(QString::fromStdString(report.signature.title()));
        if (!report.detail.empty()) lines << QString::fromStdString(report.detail);
        if (report.stopped) lines << tr("Stopped; it can go on from here.");
        lines << (report.reproduced ? tr("It fails in the same way in a fresh process: %1")
                                    : tr("It did not fail in the same way in a fresh process: %1"))
                     .arg(QString::fromStdString(report.folder));
        return lines.join('\n');
    }
    if (!m_search.isRunning())
        return tr(
            "Makes the graph smaller as long as it fails in the same way, and leaves a folder that shows "
            "the failure alone.");
    if (state.steps.empty()) return tr("Trying the whole graph…");
    return tr("Trial %1: %2 of %3 nodes are left%4\nFailure: %5")
        .arg(state.trials)
        .arg(state.steps.back().nodes)
        .arg(state.nodesBefore)
        .arg(m_search.isStopping() ? tr("; writing the best…") : QString())
        .arg(QString::fromStdString(state.signature.title()));
}

void MinifyWindow::showState() {
    const bool running = m_search.isRunning();
    m_start->setText(running                                           ? tr("&Stop (Esc)")
                     : m_search.report() && m_search.report()->stopped ? tr("Go On")
                                                                       : tr("&Start"));
    m_start->setEnabled(running ? !m_search.isStopping() : m_controller.model().has_value());
    m_afresh->setEnabled(!running && m_controller.model().has_value());
    m_open->setEnabled(!running && m_search.report().has_value());
    m_summary->setText(summary());
    m_log->setPlainText(m_search.lines().join('\n'));
    m_log->verticalScrollBar()->setValue(m_log->verticalScrollBar()->maximum());
    if (running && m_signature->text().isEmpty() && !m_search.state().steps.empty())
        m_signature->setPlaceholderText(QString::fromStdString(m_search.state().signature.text()));
    showPlot();
    emit activityChanged();
}

void MinifyWindow::showPlot() {
    Plot plot;
    plot.across = tr("trials");
    plot.up = tr("nodes");
    plot.stepped = true;
    const std::vector<MinifyStep>& steps = m_search.state().steps;
    for (const MinifyStep& step : steps)
        plot.points.push_back(
            {static_cast<double>(step.trials), static_cast<double>(step.nodes),
             tr("trial %1: %2 nodes, %3").arg(step.trials).arg(step.nodes).arg(QString::fromStdString(step.how))});
    if (!steps.empty()) {
        plot.least = QStringLiteral("0");
        plot.most = QString::number(m_search.state().trials);
        plot.top = QString::number(steps.front().nodes);
        plot.points.push_back({static_cast<double>(m_search.state().trials), static_cast<double>(steps.back().nodes),
                               tr("now: %1 nodes").arg(steps.back().nodes)});
    }
    m_plot->setPlot(std::move(plot));
}

void MinifyWindow::showBest() {
    m_text->setPlainText(m_search.best());
    const auto& graph = m_search.graph();
    if (!graph) return m_graph->clear(tr("The smallest graph that still fails"));
    if (graph->nodes.size() > kMostDrawn)
        return m_graph->clear(
            tr("%1 nodes are left; drawn once at most %2 nodes are left").arg(graph->nodes.size()).arg(kMostDrawn));
    m_graph->showGraph(graph, QStringLiteral("minified"));
}

/// Form and result stand where each has most room.
void MinifyWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_areas->setOrientation(width() > height() ? Qt::Horizontal : Qt::Vertical);
}

std::span<const KeyHint> MinifyWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Stop the search and keep the best"), QT_TR_NOOP("Esc")},
    };
    return kKeys;
}

}  // namespace cutaway::ui
