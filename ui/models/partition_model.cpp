#include "ui/models/partition_model.h"

#include <algorithm>

#include "cutaway/words.h"
#include "ui/models/number_cells.h"
#include "ui/models/units.h"
#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

bool isPartitionNumber(int column) { return column == PartitionModel::Bytes; }

}  // namespace

void PartitionModel::setSaved(std::vector<SavedTensor> saved) {
    beginResetModel();
    m_saved = std::move(saved);
    // What the forward makes for the backward first: inputs are there anyway.
    std::stable_partition(m_saved.begin(), m_saved.end(), [](const SavedTensor& value) { return !value.input; });
    endResetModel();
}

int PartitionModel::rowOf(NodeKey node) const {
    const auto found =
        std::find_if(m_saved.begin(), m_saved.end(), [&](const SavedTensor& value) { return value.node == node; });
    return found == m_saved.end() ? -1 : static_cast<int>(found - m_saved.begin());
}

int PartitionModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_saved.size());
}
int PartitionModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString PartitionModel::text(const SavedTensor& value, int column) const {
    switch (column) {
        case Name:
            return value.tensor.empty()
                       ? QString::fromStdString(value.name)
                       : tr("%1 (%2)").arg(QString::fromStdString(value.tensor), QString::fromStdString(value.name));
        case Bytes: return sizeText(value.bytes);
        case Type: return QString::fromStdString(value.type);
        case Producer: return value.input ? tr("input of the forward") : QString::fromStdString(value.op);
        case Why: return QString::fromStdString(value.why);
        default: return {};
    }
}

QVariant PartitionModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const SavedTensor& value = m_saved[static_cast<size_t>(at.row())];
    switch (role) {
        case Qt::DisplayRole: return text(value, at.column());
        case SortRole:
            return isPartitionNumber(at.column()) ? QVariant(qlonglong(value.bytes)) : text(value, at.column());
        case Qt::ToolTipRole:
            return QStringList{text(value, Name) + QStringLiteral(": ") + text(value, Type),
                               tr("%1, %2").arg(text(value, Producer), text(value, Bytes)), text(value, Why)}
                .join('\n');
        default: return isPartitionNumber(at.column()) ? numberCell(role) : QVariant();
    }
}

QVariant PartitionModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role != Qt::DisplayRole) return isPartitionNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Saved value"), tr("Bytes"), tr("Type"), tr("Made by"), tr("Why")};
    return names[section];
}

namespace {

QString totals(const PartitionChoice& choice, const QString& activations, const QString& again) {
    const auto values = static_cast<qsizetype>(choice.saved.size());
    return PartitionModel::tr("%1, %2; activations %3; computed again: %4")
        .arg(counted(values, PartitionModel::tr("saved value"), PartitionModel::tr("saved values")),
             sizeText(choice.savedBytes), activations, again);
}
QString nodes(const PartitionChoice& choice) {
    return counted(static_cast<qsizetype>(choice.recomputed.size()), PartitionModel::tr("node"),
                   PartitionModel::tr("nodes"));
}

}  // namespace

QString totalsOf(const PartitionChoice& choice) {
    return totals(choice, sizeText(choice.activationBytes), nodes(choice));
}

QString totalsOf(const PartitionChoice& choice, const PartitionChoice& partitionChoice) {
    return totals(choice,
                  PartitionModel::tr("%1 (this run: %2)")
                      .arg(sizeText(choice.activationBytes), sizeText(partitionChoice.activationBytes)),
                  PartitionModel::tr("%1 (this run: %2)").arg(nodes(choice)).arg(partitionChoice.recomputed.size()));
}

}  // namespace cutaway::ui
