#include "ui/models/text_model.h"

#include <algorithm>

#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

constexpr int kContext = 3;
constexpr int kWorthFolding = 4;  // fewer equal lines than that stay

}  // namespace

void TextModel::setLines(QVector<DiffLine> lines) {
    beginResetModel();
    m_lines = std::move(lines);
    m_unfolded.fill(false, m_lines.size());
    rebuild();
    endResetModel();
}

void TextModel::setLayout(Layout layout) {
    beginResetModel();
    m_layout = layout;
    rebuild();
    endResetModel();
}

void TextModel::setFolded(bool folded) {
    beginResetModel();
    m_folded = folded;
    m_unfolded.fill(false, m_lines.size());
    rebuild();
    endResetModel();
}

void TextModel::unfold(int row) {
    if (row < 0 || row >= m_rows.size() || m_rows[row].folded == 0) return;
    beginResetModel();
    std::fill_n(m_unfolded.begin() + m_rows[row].line, m_rows[row].folded, true);
    rebuild();
    endResetModel();
}

void TextModel::rebuild() {
    m_rows.clear();
    const int count = static_cast<int>(m_lines.size());
    // Without any change there is nothing to fold around.
    const bool fold = m_folded && changeCount() > 0;
    QVector<bool> shown(count, !fold);
    for (int i = 0; i < count; ++i) {
        if (m_unfolded[i]) shown[i] = true;
        if (m_lines[i].kind == DiffLine::Kind::Same) continue;
        for (int near = std::max(0, i - kContext); near < std::min(count, i + kContext + 1); ++near) shown[near] = true;
    }
    QVector<Row> pending;  // added halves of edited lines: a hunk shows all its old lines first
    const auto flush = [&] {
        m_rows += pending;
        pending.clear();
    };
    for (int i = 0; i < count; ++i) {
        int end = i;
        while (end < count && !shown[end]) ++end;
        if (end - i >= kWorthFolding) {
            flush();
            m_rows.append({i, DiffLine::Kind::Same, end - i});
            i = end - 1;
            continue;
        }
        const DiffLine::Kind kind = m_lines[i].kind;
        if (kind == DiffLine::Kind::Edited && m_layout == Layout::Unified) {
            m_rows.append({i, DiffLine::Kind::Removed, 0});
            pending.append({i, DiffLine::Kind::Added, 0});
            continue;
        }
        flush();
        m_rows.append({i, kind, 0});
    }
    flush();
}

int TextModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int TextModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

bool TextModel::onBeforeSide(const Row& row, int column) const {
    if (m_layout == Layout::SideBySide) return column <= Second;
    return row.kind == DiffLine::Kind::Removed;
}

QVariant TextModel::unified(const Row& row, int column) const {
    const DiffLine& line = m_lines[row.line];
    const bool removed = row.kind == DiffLine::Kind::Removed, added = row.kind == DiffLine::Kind::Added;
    switch (column) {
        case First: return line.beforeNumber && !added ? QVariant(line.beforeNumber) : QVariant();
        case Second: return line.afterNumber && !removed ? QVariant(line.afterNumber) : QVariant();
        case Third: return removed ? QStringLiteral("−") : added ? QStringLiteral("+") : QString();
        default: return removed ? line.before : line.after;
    }
}

QVariant TextModel::sideBySide(const Row& row, int column) const {
    const DiffLine& line = m_lines[row.line];
    switch (column) {
        case First: return line.beforeNumber ? QVariant(line.beforeNumber) : QVariant();
        case Second: return line.before;
        case Third: return line.afterNumber ? QVariant(line.afterNumber) : QVariant();
        default: return line.after;
    }
}

QVariant TextModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= m_rows.size()) return {};
    const Row& row = m_rows[at.row()];
    const DiffLine& line = m_lines[row.line];
    switch (role) {
        case Qt::DisplayRole:
            if (row.folded)
                return at.column() == (m_layout == Layout::Unified ? Fourth : Second)
                           ? QVariant(QStringLiteral("… ") + counted(row.folded, tr("equal line"), tr("equal lines")))
                           : QVariant();
            return m_layout == Layout::Unified ? unified(row, at.column()) : sideBySide(row, at.column());
        case Qt::ToolTipRole:
            if (row.folded) return tr("Double-click or press Enter to show them");
            return {};
        case KindRole: return static_cast<int>(row.kind);
        case FoldRole: return row.folded;
        case NodeRole: return row.folded ? QVariant() : QVariant(cutaway::packed(line.node));
        case MarksRole:
            if (line.kind != DiffLine::Kind::Edited) return {};
            return QVariant::fromValue(onBeforeSide(row, at.column()) ? line.beforeMarks : line.afterMarks);
        default: return {};
    }
}

QVariant TextModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    static const char* const kUnified[] = {"Before", "After", "", "Text"};
    static const char* const kSides[] = {"", "Before", "", "After"};
    if (section < 0 || section >= ColumnCount) return {};
    return QString::fromLatin1(m_layout == Layout::Unified ? kUnified[section] : kSides[section]);
}

int TextModel::rowOf(NodeKey node) const {
    if (node == NodeKey::None) return -1;
    for (int i = 0; i < m_rows.size(); ++i)
        if (m_rows[i].folded == 0 && m_lines[m_rows[i].line].node == node) return i;
    return -1;
}

NodeKey TextModel::nodeAt(int row) const {
    return row < 0 || row >= m_rows.size() || m_rows[row].folded ? NodeKey::None : m_lines[m_rows[row].line].node;
}

int TextModel::nextChange(int row, bool forward) const {
    const int count = static_cast<int>(m_rows.size());
    for (int i = 0; i < count; ++i) {
        const int at = (row + (forward ? i : -i) + 2 * count) % count;
        if (m_rows[at].kind != DiffLine::Kind::Same) return at;
    }
    return -1;
}

int TextModel::changeCount() const {
    return static_cast<int>(std::count_if(m_lines.begin(), m_lines.end(),
                                          [](const DiffLine& line) { return line.kind != DiffLine::Kind::Same; }));
}

QString TextModel::plainText(int row) const {
    const Row& at = m_rows[row];
    const DiffLine& line = m_lines[at.line];
    if (at.folded) return QStringLiteral("… ") + counted(at.folded, tr("equal line"), tr("equal lines"));
    if (m_layout == Layout::SideBySide) return line.after.isEmpty() ? line.before : line.after;
    const bool removed = at.kind == DiffLine::Kind::Removed;
    return (removed                            ? QStringLiteral("-")
            : at.kind == DiffLine::Kind::Added ? QStringLiteral("+")
                                               : QStringLiteral(" ")) +
           (removed ? line.before : line.after);
}

}  // namespace cutaway::ui
