#include "ui/models/kernels_model.h"

#include <algorithm>

#include "cutaway/words.h"
#include "ui/models/number_cells.h"
#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

bool isKernelNumber(int column) { return column != KernelsModel::Name && column != KernelsModel::Kind; }

QVariant kernelSortValue(const KernelInfo& kernel, int column) {
    switch (column) {
        case KernelsModel::Kind: return QString::fromStdString(kernel.kind);
        case KernelsModel::NodeCount: return static_cast<qlonglong>(kernel.nodes.size());
        case KernelsModel::Read: return static_cast<qlonglong>(kernel.bytesRead);
        case KernelsModel::Written: return static_cast<qlonglong>(kernel.bytesWritten);
        case KernelsModel::Flops: return static_cast<qlonglong>(kernel.flops);
        case KernelsModel::Time:
        case KernelsModel::Share: return kernel.microseconds;
        default: return QString::fromStdString(kernel.name);
    }
}

}  // namespace

void KernelsModel::setKernels(std::vector<KernelInfo> kernels) {
    beginResetModel();
    m_kernels = std::move(kernels);
    m_total = 0;
    for (const KernelInfo& kernel : m_kernels) m_total += kernel.microseconds;
    endResetModel();
}

int KernelsModel::rowOf(NodeKey node) const {
    for (size_t i = 0; i < m_kernels.size(); ++i)
        if (std::find(m_kernels[i].nodes.begin(), m_kernels[i].nodes.end(), node) != m_kernels[i].nodes.end())
            return static_cast<int>(i);
    return -1;
}

int KernelsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_kernels.size());
}
int KernelsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant KernelsModel::text(const KernelInfo& kernel, int column) const {
    const bool timed = kernel.microseconds > 0;
    switch (column) {
        case Name: return QString::fromStdString(kernel.name);
        case Kind: return QString::fromStdString(kernel.kind);
        case NodeCount: return QString::number(kernel.nodes.size());
        case Read: return sizeText(kernel.bytesRead);
        case Written: return sizeText(kernel.bytesWritten);
        case Flops: return kernel.flops ? countText(kernel.flops) : QString();
        case Time: return timed ? durationText(kernel.microseconds / 1000) : QString();
        case Share: return timed && m_total > 0 ? shareText(kernel.microseconds / m_total) : QString();
        default: return {};
    }
}

QVariant KernelsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const KernelInfo& kernel = m_kernels[static_cast<size_t>(at.row())];
    switch (role) {
        case Qt::DisplayRole: return text(kernel, at.column());
        case SortRole: return kernelSortValue(kernel, at.column());
        case Qt::ToolTipRole: {
            QStringList lines{QString::fromStdString(kernel.name)};  // its end may be cut off
            for (const std::string& reason : kernel.reasons) lines << QString::fromStdString(reason);
            return lines.join('\n');
        }
        default: return isKernelNumber(at.column()) ? numberCell(role) : QVariant();
    }
}

QVariant KernelsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    if (role != Qt::DisplayRole) return isKernelNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Kernel"), tr("Time"), tr("Share"),   tr("Kind"),
                             tr("Nodes"),  tr("Read"), tr("Written"), tr("FLOP")};
    return names[section];
}

}  // namespace cutaway::ui
