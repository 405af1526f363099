#include "ui/models/memory_model.h"

#include <algorithm>

#include "cutaway/words.h"
#include "ui/models/number_cells.h"
#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

bool isMemoryNumber(int column) {
    return column == MemoryModel::Bytes || column == MemoryModel::Share || column == MemoryModel::First ||
           column == MemoryModel::Last;
}

}  // namespace

void MemoryModel::show(const MemoryChart& chart, int call) {
    beginResetModel();
    m_chart = chart;
    m_rows = chart.isEmpty() ? std::vector<size_t>() : livingAt(chart.plan(), call);
    m_all = 0;
    for (const size_t row : m_rows) m_all += m_chart.at(static_cast<int>(row)).bytes;
    endResetModel();
}

int MemoryModel::rowOf(int value) const {
    const auto found = std::find(m_rows.begin(), m_rows.end(), static_cast<size_t>(value));
    return value < 0 || found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

int MemoryModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int MemoryModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant MemoryModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const int number = valueAt(at.row()), column = at.column();
    const MemoryValue& value = m_chart.at(number);
    const double share = m_all > 0 ? static_cast<double>(value.bytes) / static_cast<double>(m_all) : 0;
    if (role == SortRole) switch (column) {
            case Bytes:
            case Share: return static_cast<qlonglong>(value.bytes);
            case First: return value.first;
            case Last: return value.last;
            default: break;
        }
    if (role == Qt::DisplayRole || role == SortRole) switch (column) {
            case Name: return QString::fromStdString(value.name);
            case Bytes: return sizeText(value.bytes);
            case Share: return shareText(share);
            case Type: return QString::fromStdString(value.type);
            case First: return QString::number(value.first + 1);
            case Last: return QString::number(value.last + 1);
            case Maker: return makerText(m_chart.plan(), value);
            default: return {};
        }
    if (role == Qt::ToolTipRole) return m_chart.said(number);
    return isMemoryNumber(column) ? numberCell(role) : QVariant();
}

QVariant MemoryModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role != Qt::DisplayRole) return isMemoryNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Value"),      tr("Bytes"),     tr("Share"),  tr("Type"),
                             tr("First Call"), tr("Last Call"), tr("Made By")};
    return names[section];
}

}  // namespace cutaway::ui
