#include "ui/models/cached_graphs_model.h"

#include <QDateTime>
#include <QLocale>

#include "ui/models/units.h"

namespace cutaway::ui {

void CachedGraphsModel::setEntries(std::vector<CachedGraph> entries) {
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
}

int CachedGraphsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}
int CachedGraphsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant CachedGraphsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole && (section == Size || section == Hits))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
        case Model: return tr("Model");
        case Options: return tr("Options");
        case Size: return tr("Size");
        case Hits: return tr("Hits");
        case LastUse: return tr("Last use");
        default: return {};
    }
}

QVariant CachedGraphsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const CachedGraph& graph = m_entries[static_cast<size_t>(at.row())];
    if (role == Qt::ToolTipRole) return QString::fromStdString(graph.problem.empty() ? graph.key : graph.problem);
    if (role == Qt::TextAlignmentRole && (at.column() == Size || at.column() == Hits))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != SortRole) return {};
    const bool sorted = role == SortRole;
    switch (at.column()) {
        case Model: return QString::fromStdString(graph.model);
        case Options: return QString::fromStdString(graph.request);
        case Size: return sorted ? QVariant(static_cast<qlonglong>(graph.bytes)) : sizeText(graph.bytes);
        case Hits: return sorted ? QVariant(static_cast<qlonglong>(graph.hits)) : QString::number(graph.hits);
        case LastUse:
            if (sorted) return static_cast<qlonglong>(graph.used);
            return graph.used > 0 ? QLocale().toString(QDateTime::fromSecsSinceEpoch(graph.used), QLocale::ShortFormat)
                                  : QString();
        default: return {};
    }
}

}  // namespace cutaway::ui
