#include "ui/models/explain_model.h"

#include <algorithm>

#include "ui/models/steps_model.h"

namespace cutaway::ui {

void ExplainModel::setExplained(Explained explained) {
    beginResetModel();
    m_explained = std::move(explained);
    m_rows.clear();
    for (const RuleExplanation& answer : m_explained.rules) m_rows.push_back({answer.pass, answer.rule, &answer, nullptr});
    for (const RuleUse& use : m_explained.uses) {
        const auto known = std::find_if(m_rows.begin(), m_rows.end(), [&](const Row& row) { return row.pass == m_explained.pass && row.rule == use.rule; });
        if (known != m_rows.end()) known->use = &use;
        else m_rows.push_back({m_explained.pass, use.rule, nullptr, &use});
    }
    // What applies first, then the current step's, then as the passes run.
    const auto order = [&](const Row& row) { return (row.answer && row.answer->applies ? 0 : 4) + (row.pass == m_explained.pass ? 0 : 2) + (row.answer ? 0 : 1); };
    std::stable_sort(m_rows.begin(), m_rows.end(), [&](const Row& a, const Row& b) { return order(a) < order(b); });
    endResetModel();
}

QString ExplainModel::ruleText(int row) const {
    if (row < 0 || row >= rowCount() || !m_explained.infos) return {};
    const Row& wanted = m_rows[static_cast<size_t>(row)];
    for (const RuleInfo& info : *m_explained.infos) {
        if (info.name != wanted.rule || info.pass != wanted.pass) continue;
        QString text = tr("find\n%1\n\nreplace\n%2").arg(QString::fromStdString(info.find).trimmed(), QString::fromStdString(info.replace).trimmed());
        if (!info.why.empty()) text.prepend(QString::fromStdString(info.why) + QStringLiteral("\n\n"));
        if (info.condition) text += tr("\n\nand a condition that the pattern does not say");
        return text;
    }
    return {};
}

QString ExplainModel::lineOf(int row) const {
    QStringList parts;
    for (int column = 0; column < ColumnCount; ++column)
        if (const QString text = index(row, column).data().toString(); !text.isEmpty()) parts << text;
    return parts.join(QStringLiteral("\t"));
}

int ExplainModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_rows.size()); }
int ExplainModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant ExplainModel::cell(const Row& row, int column) const {
    switch (column) {
        case Rule: return QString::fromStdString(row.pass.empty() ? row.rule : row.pass + " / " + row.rule);
        case Answer: return row.answer == nullptr ? QString() : row.answer->applies ? tr("✓ applies") : tr("✗ does not");
        case Reason: return row.answer == nullptr ? QString() : QString::fromStdString(row.answer->reason);
        case Tried: return row.use ? QVariant(static_cast<qlonglong>(row.use->tried)) : QVariant();
        case Applied: return row.use ? QVariant(static_cast<qlonglong>(row.use->applied)) : QVariant();
        case Time: return row.use ? QVariant(durationText(row.use->milliseconds)) : QVariant();
        default: return {};
    }
}

QVariant ExplainModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const Row& row = m_rows[static_cast<size_t>(at.row())];
    switch (role) {
        case Qt::DisplayRole: return cell(row, at.column());
        case Qt::ToolTipRole: {
            const QString text = ruleText(at.row());
            return text.isEmpty() ? cell(row, at.column()) : QVariant(text);
        }
        case Qt::TextAlignmentRole: return at.column() >= Tried ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
        case NodeRole: return row.answer && !row.answer->nodes.empty() ? QVariant(static_cast<quint32>(cutaway::index(row.answer->nodes.front()))) : QVariant();
        case SortRole: return at.column() == Time && row.use ? QVariant(row.use->milliseconds) : cell(row, at.column());
        default: return {};
    }
}

QVariant ExplainModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
        case Rule: return tr("Rule");
        case Answer: return tr("At this node");
        case Reason: return tr("Why not");
        case Tried: return tr("Tried");
        case Applied: return tr("Applied");
        case Time: return tr("Time");
        default: return {};
    }
}

}  // namespace cutaway::ui
