#include "ui/windows/breakpoints_window.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QShortcut>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/session/session_controller.h"

namespace cutaway::ui {
namespace {

using BreakpointKind = Breakpoint::Kind;

constexpr KeyHint kBreakpointKeys[] = {{QT_TRANSLATE_NOOP("cutaway::ui", "Remove the breakpoint"), "Del"},
                                       {QT_TRANSLATE_NOOP("cutaway::ui", "Edit its condition"), "F2"}};

constexpr QLatin1String kStored("breakpoints/"), kOff("off ");

/// In place of those there are, those that the model had when it was open last; a text that no longer means anything is
/// left out.
void readStored(const QString& model, Breakpoints& breakpoints) {
    const QStringList texts = QSettings().value(kStored + model).toStringList();
    while (!breakpoints.all().empty()) breakpoints.remove(0);
    for (const QString& text : texts) {
        const bool off = text.startsWith(kOff);
        auto sound = parseBreakpoint(text.mid(off ? kOff.size() : 0).toStdString());
        if (!sound) continue;
        sound->enabled = !off;
        breakpoints.add(*sound);
    }
}

void store(const QString& model, const Breakpoints& breakpoints) {
    QStringList texts;
    for (const Breakpoint& one : breakpoints.all())
        texts << (one.enabled ? QString() : QString(kOff)) + QString::fromStdString(one.text());
    if (texts.isEmpty()) QSettings().remove(kStored + model);
    else QSettings().setValue(kStored + model, texts);
}

/// What the field asks for.
QString hintFor(BreakpointKind kind) {
    switch (kind) {
        case BreakpointKind::Pass: return BreakpointsWindow::tr("decompose, or backward/post_grad/decompose#1");
        case BreakpointKind::NodeBorn:
        case BreakpointKind::NodeDies: return BreakpointsWindow::tr("the node's name");
        case BreakpointKind::OpAppears:
        case BreakpointKind::OpDisappears: return BreakpointsWindow::tr("as in Search: op=mm & numel>1e6");
        case BreakpointKind::NonFinite: break;
    }
    return BreakpointsWindow::tr("no condition needed; runs every graph");
}

}  // namespace

std::span<const KeyHint> BreakpointsWindow::keys() { return kBreakpointKeys; }

BreakpointsWindow::BreakpointsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_breakpoints(parts.controller.breakpoints()),
      m_model(*new BreakpointsModel(m_breakpoints, this)),
      m_kind(new QComboBox),
      m_what(new QLineEdit),
      m_add(new QPushButton(tr("Add"))),
      m_remove(new QPushButton(tr("Remove"))),
      m_goOn(new QPushButton(tr("Continue"))),
      m_state(new QLabel),
      m_table(new QTableView) {
    for (const auto& [kind, title] : std::initializer_list<std::pair<BreakpointKind, QString>>{
             {BreakpointKind::Pass, tr("pass has run")},
             {BreakpointKind::NodeBorn, tr("node is created")},
             {BreakpointKind::NodeDies, tr("node is removed")},
             {BreakpointKind::OpAppears, tr("node appears with")},
             {BreakpointKind::OpDisappears, tr("node disappears with")},
             {BreakpointKind::NonFinite, tr("first NaN or infinity")}})
        m_kind->addItem(title, static_cast<int>(kind));
    m_kind->setAccessibleName(tr("Stop when"));
    m_what->setAccessibleName(tr("Which"));
    m_what->setClearButtonEnabled(true);
    m_goOn->setToolTip(tr("Recompile to the next breakpoint (Ctrl+F9)"));
    m_state->setWordWrap(true);
    m_table->setModel(&m_model);
    m_table->setAccessibleName(tr("Breakpoints"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 6);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_table->horizontalHeader()->setSectionResizeMode(BreakpointsModel::Condition, QHeaderView::Stretch);
    m_table->horizontalHeader()->setSectionResizeMode(BreakpointsModel::Stopped, QHeaderView::ResizeToContents);

    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    for (QWidget* widget : std::initializer_list<QWidget*>{m_kind, m_what, m_add, m_remove, m_goOn})
        row->addWidget(widget);
    row->setStretch(1, 1);
    column->addLayout(row);
    column->addWidget(m_state);
    column->addWidget(m_table, 1);
    setWidget(page);
    setFocusProxy(m_what);

    connect(m_kind, &QComboBox::currentIndexChanged, this, &BreakpointsWindow::follow);
    connect(m_what, &QLineEdit::textChanged, this, &BreakpointsWindow::follow);
    connect(m_what, &QLineEdit::returnPressed, this, &BreakpointsWindow::addTyped);
    connect(m_add, &QPushButton::clicked, this, &BreakpointsWindow::addTyped);
    connect(m_remove, &QPushButton::clicked, this, &BreakpointsWindow::removeChosen);
    connect(m_goOn, &QPushButton::clicked, &m_controller, &SessionController::goOn);
    connect(&m_model, &BreakpointsModel::refused, this, &Window::message);
    auto* remove = new QShortcut(QKeySequence::Delete, m_table);
    remove->setContext(Qt::WidgetShortcut);
    connect(remove, &QShortcut::activated, this, &BreakpointsWindow::removeChosen);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &BreakpointsWindow::follow);
    connect(&m_controller, &SessionController::modelOpened, this, [this] {
        m_keptFor = QString();  // replacing the list is not a change of the one that is kept
        readStored(m_controller.modelKey(), m_breakpoints);
        m_keptFor = m_controller.modelKey();
    });
    connect(&m_breakpoints, &Breakpoints::changed, this, [this] {
        if (!m_keptFor.isEmpty()) store(m_keptFor, m_breakpoints);
    });
    connect(&m_breakpoints, &Breakpoints::changed, this, &BreakpointsWindow::follow);
    connect(&m_breakpoints, &Breakpoints::stopChanged, this, &BreakpointsWindow::follow);
    follow();
}

void BreakpointsWindow::follow() {
    const auto kind = static_cast<BreakpointKind>(m_kind->currentData().toInt());
    m_what->setEnabled(kind != BreakpointKind::NonFinite);
    m_what->setPlaceholderText(hintFor(kind));
    m_add->setEnabled(kind == BreakpointKind::NonFinite || !m_what->text().trimmed().isEmpty());
    m_remove->setEnabled(m_table->selectionModel()->hasSelection());
    const auto& stop = m_breakpoints.stop();
    m_goOn->setEnabled(stop.has_value());
    m_state->setText(
        stop ? tr("Stopped in %1: %2. Continue (Ctrl+F9) compiles on to the next stop.")
                   .arg(m_controller.placeName(stop->place), QString::fromStdString(stop->detail))
        : m_breakpoints.anyEnabled()
            ? tr("The next compile (Ctrl+B) stops where one of these holds.")
            : tr("A compile stops where a condition holds; what it has done can be looked at. F9 puts one on "
                 "the current pass."));
}

void BreakpointsWindow::addTyped() {
    if (!m_add->isEnabled()) return;
    Breakpoint typed;
    typed.kind = static_cast<BreakpointKind>(m_kind->currentData().toInt());
    if (typed.kind != BreakpointKind::NonFinite) typed.what = m_what->text().trimmed().toStdString();
    const auto sound = parseBreakpoint(typed.text());
    if (!sound) return m_state->setText(QString::fromStdString(sound.error().message));
    m_breakpoints.add(*sound);
    m_what->clear();
}

void BreakpointsWindow::removeChosen() {
    QList<int> rows;
    for (const QModelIndex& row : m_table->selectionModel()->selectedRows()) rows << row.row();
    std::sort(rows.rbegin(), rows.rend());
    for (const int row : rows) m_breakpoints.remove(row);
}

void BreakpointsWindow::say(bool there, const Breakpoint& breakpoint) {
    emit message(there ? tr("The next compile stops when %1").arg(sentenceOf(breakpoint))
                       : tr("Compiles no longer stop when %1").arg(sentenceOf(breakpoint)));
}

void BreakpointsWindow::togglePass() {
    const Run* run = m_selection.hasPlace() ? m_controller.runOf(m_selection.place().run) : nullptr;
    const int step = run ? m_selection.place().step : -1;
    if (!run || step < 0 || step >= static_cast<int>(run->steps.size()))
        return emit message(tr("Choose a pass in the Steps window first."));
    const Breakpoint there{.kind = BreakpointKind::Pass, .what = run->steps[static_cast<size_t>(step)].key()};
    say(m_breakpoints.toggle(there.kind, there.what), there);
}

void BreakpointsWindow::toggleDeath(const QString& node) {
    const Breakpoint there{.kind = BreakpointKind::NodeDies, .what = node.toStdString()};
    say(m_breakpoints.toggle(there.kind, there.what), there);
}

}  // namespace cutaway::ui
