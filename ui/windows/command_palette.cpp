#include "ui/windows/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

namespace cutaway::ui {
namespace {

constexpr int kShown = 60;

}  // namespace

QVector<int> rankEntries(const QVector<PaletteEntry>& entries, const QString& typed, int limit) {
    const QStringList words = typed.split(' ', Qt::SkipEmptyParts);
    QVector<std::pair<qsizetype, int>> hits;
    for (int i = 0; i < entries.size(); ++i) {
        const QString text = entries[i].text + ' ' + entries[i].kind;
        qsizetype score = 0;
        for (const QString& word : words) {
            const qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive);
            if (at < 0) {
                score = -1;
                break;
            }
            score += at;
        }
        if (score >= 0) hits.append({score, i});
    }
    std::stable_sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    QVector<int> found;
    for (const auto& hit : hits)
        if (found.size() < limit) found.append(hit.second);
    return found;
}

CommandPalette::CommandPalette(QVector<PaletteEntry> entries, QWidget* parent)
    : QDialog(parent, Qt::Popup), m_entries(std::move(entries)), m_field(new QLineEdit), m_list(new QListWidget) {
    setObjectName(QStringLiteral("commandPalette"));
    setAttribute(Qt::WA_DeleteOnClose);
    m_field->setPlaceholderText(tr("Go to an action, pass, node or file"));
    m_field->setAccessibleName(tr("Go to"));
    m_list->setAccessibleName(tr("Matches"));
    m_list->setUniformItemSizes(true);
    m_field->installEventFilter(this);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(6, 6, 6, 6);
    column->addWidget(m_field);
    column->addWidget(m_list);
    resize(520, 360);
    connect(m_field, &QLineEdit::textChanged, this, &CommandPalette::refresh);
    connect(m_field, &QLineEdit::returnPressed, this, &CommandPalette::runCurrent);
    connect(m_list, &QListWidget::itemClicked, this, &CommandPalette::runCurrent);
    refresh();
    m_field->setFocus();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_field && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        const int step = key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0;
        if (step != 0 && m_list->count() > 0) {
            m_list->setCurrentRow(std::clamp(m_list->currentRow() + step, 0, m_list->count() - 1));
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

void CommandPalette::refresh() {
    m_list->clear();
    for (int index : rankEntries(m_entries, m_field->text(), kShown)) {
        auto* item =
            new QListWidgetItem(QStringLiteral("%1   (%2)").arg(m_entries[index].text, m_entries[index].kind), m_list);
        item->setData(Qt::UserRole, index);
    }
    if (m_list->count() > 0) m_list->setCurrentRow(0);
}

void CommandPalette::runCurrent() {
    const QListWidgetItem* item = m_list->currentItem();
    if (!item) return;
    // After closing: the action may open a window of its own, which a popup would swallow.
    QTimer::singleShot(0, parent(), m_entries[item->data(Qt::UserRole).toInt()].run);
    close();
}

}  // namespace cutaway::ui
