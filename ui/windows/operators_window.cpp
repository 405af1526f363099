#include "ui/windows/operators_window.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QShortcut>
#include <QVBoxLayout>

#include "ui/models/units.h"
#include "ui/session/ask_queue.h"
#include "ui/windows/operator_dialog.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {
namespace {

constexpr KeyHint kOperatorKeys[] = {{QT_TRANSLATE_NOOP("cutaway::ui", "Delete the entry"), "Del"}};
constexpr int kTimedRuns = 100;

QString joinedLines(const std::vector<std::string>& lines) {
    QStringList all;
    for (const std::string& line : lines) all << QString::fromStdString(line);
    return all.join(QChar('\n'));
}

/// "result f32[2, 3], 0 to 1.5, largest error 0 of 1.5".
QString outputText(const OutputReport& output) {
    QString text = OperatorsWindow::tr("%1: %2, %3 to %4")
                       .arg(QString::fromStdString(output.name), QString::fromStdString(output.type))
                       .arg(output.minimum, 0, 'g', 6)
                       .arg(output.maximum, 0, 'g', 6);
    if (output.compared)
        text += (output.within ? OperatorsWindow::tr(", as the interpreter has it (largest error %1)")
                               : OperatorsWindow::tr(", DIFFERS from the interpreter's (largest error %1)"))
                    .arg(output.maxAbsoluteError, 0, 'g', 3);
    if (!output.problem.empty()) text += QStringLiteral(" ") + QString::fromStdString(output.problem);
    return text;
}

}  // namespace

std::span<const KeyHint> OperatorsWindow::keys() { return kOperatorKeys; }

OperatorsWindow::OperatorsWindow(const WindowRow& tableRow, const WindowParts&)
    : Window(tableRow),
      m_model(*new OperatorsModel(this)),
      m_table(makeList(m_model, OperatorsModel::SortRole, tr("Compiled operators"))),
      m_state(new QLabel),
      m_compile(new QPushButton(tr("Compile One Operator…"))),
      m_run(new QPushButton(tr("Run"))),
      m_time(new QPushButton(tr("Time"))),
      m_compare(new QPushButton(tr("Compare"))),
      m_remove(new QPushButton(tr("Delete"))) {
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_time->setToolTip(tr("Run it %1 times").arg(kTimedRuns));
    m_compare->setToolTip(tr("Run it and the interpreter on the same inputs"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    for (QPushButton* button : {m_compile, m_run, m_time, m_compare, m_remove}) row->addWidget(button);
    row->addStretch(1);
    column->addLayout(row);
    column->addWidget(m_state);
    column->addWidget(m_table, 1);
    setWidget(page);
    setFocusProxy(m_table);

    connect(m_compile, &QPushButton::clicked, this, &OperatorsWindow::askOperator);
    connect(m_run, &QPushButton::clicked, this, [this] { runChosen({}, tr("Running")); });
    connect(m_time, &QPushButton::clicked, this, [this] { runChosen({.repeat = kTimedRuns}, tr("Timing")); });
    connect(m_compare, &QPushButton::clicked, this, [this] { runChosen({.compare = true}, tr("Comparing")); });
    connect(m_remove, &QPushButton::clicked, this, &OperatorsWindow::removeChosen);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &OperatorsWindow::follow);
    auto* remove = new QShortcut(QKeySequence::Delete, m_table);
    remove->setContext(Qt::WidgetShortcut);
    connect(remove, &QShortcut::activated, this, &OperatorsWindow::removeChosen);
    follow();
}

void OperatorsWindow::showEvent(QShowEvent* event) {
    Window::showEvent(event);
    refresh();
}

void OperatorsWindow::refresh() {
    askQueue<OperatorList>(
        this, m_lists, "operators", m_listing, [](const Progress&) { return operatorEntries({}); },
        [this](Result<OperatorList> list) {
            if (m_wanted.empty())
                if (const OperatorEntry* entry = chosen()) m_wanted = entry->library;
            m_model.setEntries(list ? std::move(list->entries) : std::vector<OperatorEntry>());
            m_remarks = list ? joinedLines(list->remarks) : QString::fromStdString(list.error().text());
            fitColumns(*m_table);
            choose(std::exchange(m_wanted, {}));
            follow();
        });
}

const OperatorEntry* OperatorsWindow::chosen() const {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (!shown.isValid()) return nullptr;
    const int row = static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(shown).row();
    return row < m_model.rowCount() ? &m_model.at(row) : nullptr;
}

void OperatorsWindow::choose(const std::string& library) {
    const int row = library.empty() ? -1 : m_model.rowOf(library);
    if (row < 0) return;
    m_table->selectRow(
        static_cast<const QSortFilterProxyModel*>(m_table->model())->mapFromSource(m_model.index(row, 0)).row());
}

void OperatorsWindow::follow() {
    const OperatorEntry* entry = chosen();
    const bool idle = m_cancel == nullptr, runs = idle && entry && entry->problem.empty();
    m_compile->setEnabled(idle);
    for (QPushButton* button : {m_run, m_time, m_compare}) button->setEnabled(runs);
    m_remove->setEnabled(idle && entry);
    QStringList lines;
    if (!idle) lines << tr("%1…").arg(m_doing);
    else if (!m_said.isEmpty()) lines << m_said;
    else if (entry && !entry->problem.empty()) lines << QString::fromStdString(entry->problem);
    if (!m_remarks.isEmpty()) lines << m_remarks;
    if (lines.isEmpty() && m_model.rowCount() == 0)
        lines << tr(
            "Operators that are compiled one by one are kept here, as a library for each, and found by the "
            "next program.");
    m_state->setText(lines.join(QChar('\n')));
    m_state->setVisible(!lines.isEmpty());
}

void OperatorsWindow::say(const QString& text) {
    m_said = text;
    follow();
}

template <class T>
void OperatorsWindow::start(const QString& doing, std::function<Result<T>(const Progress&)> work,
                            std::function<void(T)> then) {
    if (m_cancel) return;
    m_doing = doing;
    m_since.start();
    m_cancel = askQueue<T>(this, m_works, "operators", m_working, std::move(work),
                           [this, then = std::move(then)](Result<T> result) {
                               m_cancel.reset();
                               if (result) {
                                   then(std::move(*result));
                               } else {
                                   say(QString::fromStdString(result.error().text()));
                               }
                               emit activityChanged();
                               refresh();
                           });
    emit activityChanged();
    follow();
}

std::optional<Activity> OperatorsWindow::activity() const {
    if (!m_cancel) return {};
    Activity now;
    now.tag = QString::fromLatin1(row().name);
    now.doing = m_doing;
    now.since = m_since;
    return now;
}

void OperatorsWindow::stopActivity() {
    if (!m_cancel) return;
    m_cancel->cancel();
    m_cancel.reset();
    ++m_working;
    emit activityChanged();
    say(tr("Stopped."));
}

void OperatorsWindow::askOperator() {
    auto* dialog = new OperatorDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QDialog::accepted, this, [this, dialog] { compile(dialog->options()); });
    dialog->open();
}

void OperatorsWindow::compile(const OperatorOptions& options) {
    start<CompiledOperator>(
        tr("Compiling %1").arg(QString::fromStdString(options.op)),
        [options](const Progress& progress) { return compileOperator(options, progress); },
        [this](const CompiledOperator& made) {
            m_wanted = made.entry.library;
            const QString name = QString::fromStdString(made.entry.op);
            const QString what = made.found
                                     ? tr("%1 was in the cache.").arg(name)
                                     : tr("%1 is compiled, in %2.").arg(name, durationText(made.compileSeconds * 1000));
            say(made.remarks.empty() ? what : what + QChar('\n') + joinedLines(made.remarks));
        });
}

void OperatorsWindow::runChosen(const OperatorRunOptions& options, const QString& doing) {
    const OperatorEntry* entry = chosen();
    if (!entry) return;
    start<RunReport>(
        doing + QStringLiteral(" ") + QString::fromStdString(entry->op),
        [entry = *entry, options](const Progress& progress) { return runOperator(entry, options, progress); },
        [this](const RunReport& report) {
            QStringList lines;
            for (const OutputReport& output : report.outputs) lines << outputText(output);
            if (report.repeats > 0)
                lines << tr("Median %1, best %2 of %3 runs.")
                             .arg(durationText(report.medianMilliseconds), durationText(report.minMilliseconds))
                             .arg(report.repeats);
            say(lines.join(QChar('\n')));
        });
}

void OperatorsWindow::removeChosen() {
    const OperatorEntry* entry = chosen();
    if (!entry) return;
    start<bool>(
        tr("Deleting %1").arg(QString::fromStdString(entry->op)),
        [entry = *entry](const Progress&) -> Result<bool> {
            CT_TRY_VOID(removeOperator(entry));
            return true;
        },
        [this, text = QString::fromStdString(entry->op) + QChar('(') + inputsText(*entry) + QChar(')')](bool) {
            say(tr("%1 is deleted.").arg(text));
        });
}

}  // namespace cutaway::ui
