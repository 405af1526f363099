#include "ui/models/loops_model.h"

#include <algorithm>

#include "ui/models/number_cells.h"
#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

bool isLoopNumber(int column) { return column == LoopsModel::Calls || column == LoopsModel::Time; }

QString nodesOf(const LoopKernel& kernel, const QString& between) {
    QStringList names;
    for (const std::string& name : kernel.nodeNames) names << QString::fromStdString(name);
    return names.join(between);
}

}  // namespace

void LoopsModel::setKernels(std::vector<LoopKernel> kernels) {
    beginResetModel();
    m_kernels = std::move(kernels);
    endResetModel();
}

int LoopsModel::rowOf(NodeKey node) const {
    for (size_t i = 0; i < m_kernels.size(); ++i)
        if (std::find(m_kernels[i].nodes.begin(), m_kernels[i].nodes.end(), node) != m_kernels[i].nodes.end())
            return static_cast<int>(i);
    return -1;
}

int LoopsModel::rowOf(const QString& name) const {
    for (size_t i = 0; i < m_kernels.size(); ++i)
        if (QString::fromStdString(m_kernels[i].name) == name) return static_cast<int>(i);
    return -1;
}

bool LoopsModel::isTimed() const {
    return std::any_of(m_kernels.begin(), m_kernels.end(), [](const LoopKernel& k) { return k.microseconds > 0; });
}

int LoopsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_kernels.size());
}
int LoopsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant LoopsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const LoopKernel& kernel = m_kernels[static_cast<size_t>(at.row())];
    const int column = at.column();
    if (role == SortRole && column == Calls) return kernel.calls;
    if (role == SortRole && column == Time) return kernel.microseconds;
    if (role == Qt::DisplayRole || role == SortRole) switch (column) {
            case Name: return QString::fromStdString(kernel.name);
            case Nodes: return nodesOf(kernel, QStringLiteral(", "));
            case Kind: return QString::fromStdString(kernel.kind);
            case Calls: return QString::number(kernel.calls);
            case Time: return kernel.microseconds > 0 ? durationText(kernel.microseconds / 1000) : QString();
            default: return {};
        }
    if (role == Qt::ToolTipRole)  // its end may be cut off
        return QString(QString::fromStdString(kernel.name) + QChar('\n') + nodesOf(kernel, QStringLiteral("\n")));
    return isLoopNumber(column) ? numberCell(role) : QVariant();
}

QVariant LoopsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role != Qt::DisplayRole) return isLoopNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Kernel"), tr("Calls"), tr("Time"), tr("Kind"), tr("Nodes")};
    return names[section];
}

}  // namespace cutaway::ui
