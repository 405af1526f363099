#include "ui/models/results_model.h"

#include <algorithm>

namespace cutaway::ui {
namespace {

QString scaled(double value, double step, const char* const* units, int count) {
    int unit = 0;
    while (value >= step && unit + 1 < count) value /= step, ++unit;
    return QStringLiteral("%1 %2").arg(value, 0, 'f', unit == 0 || value >= 100 ? 0 : 1).arg(QString::fromLatin1(units[unit])).trimmed();
}

QVariant numberText(double value) { return QString::number(value, 'g', 6); }

}  // namespace

QString bytesText(int64_t bytes) {
    static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(static_cast<double>(bytes), 1024, kUnits, 5);
}

QString countText(int64_t count) {
    static const char* const kUnits[] = {"", "k", "M", "G", "T"};
    return scaled(static_cast<double>(count), 1000, kUnits, 5);
}

void OutputsModel::setOutputs(std::vector<OutputReport> outputs) {
    beginResetModel();
    m_outputs = std::move(outputs);
    endResetModel();
}

int OutputsModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_outputs.size()); }
int OutputsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant OutputsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const OutputReport& output = m_outputs[static_cast<size_t>(at.row())];
    if (role == Qt::TextAlignmentRole && at.column() >= Minimum && at.column() <= Error) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) return QString::fromStdString(output.problem);
    if (role != Qt::DisplayRole) return {};
    switch (at.column()) {
        case Name: return QString::fromStdString(output.name);
        case Type: return QString::fromStdString(output.type);
        case Minimum: return numberText(output.minimum);
        case Maximum: return numberText(output.maximum);
        case Mean: return numberText(output.mean);
        case NonFinite: return QString::number(output.nonFinite);
        case Error: return output.compared ? numberText(output.maxAbsoluteError) : QVariant();
        case Verdict:
            if (!output.problem.empty()) return QStringLiteral("✗ ") + QString::fromStdString(output.problem);
            if (!output.compared) return tr("not compared");
            return output.within ? tr("✓ within tolerance") : tr("✗ outside tolerance");
        default: return {};
    }
}

QVariant OutputsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    const QString names[] = {tr("Output"), tr("Type"), tr("Min"), tr("Max"), tr("Mean"), tr("Non-finite"), tr("Max error"), tr("Against expectation")};
    return section >= 0 && section < ColumnCount ? names[section] : QVariant();
}

void KernelsModel::setKernels(std::vector<KernelInfo> kernels) {
    beginResetModel();
    m_kernels = std::move(kernels);
    m_total = 0;
    for (const KernelInfo& kernel : m_kernels) m_total += kernel.microseconds;
    endResetModel();
}

int KernelsModel::rowOf(NodeId node) const {
    for (size_t i = 0; i < m_kernels.size(); ++i)
        if (std::find(m_kernels[i].nodes.begin(), m_kernels[i].nodes.end(), node) != m_kernels[i].nodes.end()) return static_cast<int>(i);
    return -1;
}

int KernelsModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_kernels.size()); }
int KernelsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant KernelsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const KernelInfo& kernel = m_kernels[static_cast<size_t>(at.row())];
    if (role == Qt::TextAlignmentRole && at.column() >= NodeCount) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        QStringList reasons;
        for (const std::string& reason : kernel.reasons) reasons << QString::fromStdString(reason);
        return reasons.join('\n');
    }
    if (role != Qt::DisplayRole) return {};
    const bool timed = kernel.microseconds > 0;
    switch (at.column()) {
        case Name: return QString::fromStdString(kernel.name);
        case Kind: return QString::fromStdString(kernel.kind);
        case NodeCount: return QString::number(kernel.nodes.size());
        case Read: return bytesText(kernel.bytesRead);
        case Written: return bytesText(kernel.bytesWritten);
        case Flops: return kernel.flops ? countText(kernel.flops) : QString();
        case Time: return timed ? QStringLiteral("%1 µs").arg(kernel.microseconds, 0, 'f', 1) : QString();
        case Share: return timed && m_total > 0 ? QStringLiteral("%1 %").arg(100 * kernel.microseconds / m_total, 0, 'f', 1) : QString();
        default: return {};
    }
}

QVariant KernelsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    const QString names[] = {tr("Kernel"), tr("Kind"), tr("Nodes"), tr("Read"), tr("Written"), tr("FLOP"), tr("Time"), tr("Share")};
    return section >= 0 && section < ColumnCount ? names[section] : QVariant();
}

}  // namespace cutaway::ui
