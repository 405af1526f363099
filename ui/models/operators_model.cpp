#include "ui/models/operators_model.h"

#include <QDateTime>
#include <QLocale>

#include "ui/models/units.h"

namespace cutaway::ui {

QString inputsText(const OperatorEntry& entry) {
    QStringList inputs;
    for (const std::string& input : entry.inputs) inputs << QString::fromStdString(input);
    return inputs.join(QStringLiteral(", "));
}

void OperatorsModel::setEntries(std::vector<OperatorEntry> entries) {
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
}

int OperatorsModel::rowOf(const std::string& library) const {
    for (size_t i = 0; i < m_entries.size(); ++i)
        if (m_entries[i].library == library) return static_cast<int>(i);
    return -1;
}

int OperatorsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}
int OperatorsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant OperatorsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole && (section == Size || section == Hits))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
        case Operator: return tr("Operator");
        case Inputs: return tr("Inputs");
        case Device: return tr("Device");
        case Size: return tr("Size");
        case Hits: return tr("Hits");
        case LastUse: return tr("Last use");
        default: return {};
    }
}

QVariant OperatorsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const OperatorEntry& entry = m_entries[static_cast<size_t>(at.row())];
    if (role == Qt::ToolTipRole)
        return QString::fromStdString(entry.problem.empty() ? entry.library : entry.problem + "\n" + entry.library);
    if (role == Qt::TextAlignmentRole && (at.column() == Size || at.column() == Hits))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != SortRole) return {};
    const bool sorted = role == SortRole;
    switch (at.column()) {
        case Operator: return QString::fromStdString(entry.op);
        case Inputs: return inputsText(entry);
        case Device: return QString::fromStdString(entry.device);
        case Size: return sorted ? QVariant(static_cast<qlonglong>(entry.bytes)) : sizeText(entry.bytes);
        case Hits:
            if (sorted) return static_cast<qlonglong>(entry.hits);
            return entry.made > 0 ? QString::number(entry.hits) : QString();
        case LastUse:
            if (sorted) return static_cast<qlonglong>(entry.used);
            return entry.used > 0 ? QLocale().toString(QDateTime::fromSecsSinceEpoch(entry.used), QLocale::ShortFormat)
                                  : QString();
        default: return {};
    }
}

}  // namespace cutaway::ui
