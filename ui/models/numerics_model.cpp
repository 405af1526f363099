#include "ui/models/numerics_model.h"

#include <algorithm>

#include "ui/models/number_cells.h"

namespace cutaway::ui {
namespace {

bool isNumericsNumber(int column) { return column >= NumericsModel::Absolute && column <= NumericsModel::Reference64; }

}  // namespace

void NumericsModel::setRows(const std::vector<NodeNumbers>& rows) {
    beginResetModel();
    m_rows = rows;
    endResetModel();
}

void NumericsModel::appendRows(const std::vector<NodeNumbers>& rows) {
    if (rows.size() <= m_rows.size()) return;
    beginInsertRows({}, static_cast<int>(m_rows.size()), static_cast<int>(rows.size()) - 1);
    m_rows.insert(m_rows.end(), rows.begin() + static_cast<std::ptrdiff_t>(m_rows.size()), rows.end());
    endInsertRows();
}

int NumericsModel::rowOf(NodeKey node) const {
    const auto found =
        std::find_if(m_rows.begin(), m_rows.end(), [&](const NodeNumbers& row) { return row.node == node; });
    return node == NodeKey::None || found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

int NumericsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int NumericsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

/// Negative where there is none.
double NumericsModel::number(const NodeNumbers& row, int column) {
    if (row.verdict == NodeVerdict::Unmatched) return -1;
    switch (column) {
        case Absolute: return row.maxAbsolute;
        case Relative: return row.maxRelative;
        case Ulp: return row.maxUlp;
        case Cosine: return row.cosine;
        case From64: return row.rmse;
        case Reference64: return row.referenceRmse;
        default: return -1;
    }
}

QString NumericsModel::text(const NodeNumbers& row, int column) {
    switch (column) {
        case Verdict: {
            const QString sign = diverges(row.verdict)               ? QStringLiteral("✗ ")
                                 : row.verdict == NodeVerdict::Equal ? QStringLiteral("= ")
                                 : row.verdict == NodeVerdict::Close ? QStringLiteral("≈ ")
                                                                     : QString();
            return sign + tr(wordOf(row.verdict));
        }
        case Name: return QString::fromStdString(row.name);
        case Op: return QString::fromStdString(row.op);
        case Type: return QString::fromStdString(row.type);
        case Reference: return QString::fromStdString(row.reference);
        case Cosine: return row.verdict == NodeVerdict::Unmatched ? QString() : QString::number(row.cosine, 'f', 6);
        default: {
            const double value = number(row, column);
            return value < 0 ? QString() : QString::number(value, 'g', 3);
        }
    }
}

QVariant NumericsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const NodeNumbers& row = m_rows[static_cast<size_t>(at.row())];
    switch (role) {
        case Qt::DisplayRole: return text(row, at.column());
        case SortRole:
            if (isNumericsNumber(at.column())) return number(row, at.column());
            if (at.column() == Verdict) return diverges(row.verdict) ? 0 : static_cast<int>(row.verdict) + 1;
            return text(row, at.column());
        case Qt::ToolTipRole: {
            QStringList lines{text(row, Name) + QStringLiteral(": ") + text(row, Type)};
            if (!row.why.empty()) lines << QString::fromStdString(row.why);
            if (row.nans + row.infinities > 0)
                lines
                    << tr("%1 NaN and %2 infinite of %3 elements").arg(row.nans).arg(row.infinities).arg(row.elements);
            if (row.reference.empty()) lines << tr("The reference computes no such value.");
            return lines.join('\n');
        }
        default: return isNumericsNumber(at.column()) ? numberCell(role) : QVariant();
    }
}

QVariant NumericsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const QString tips[] = {tr("Verdict by the chosen criterion"),
                            {},
                            {},
                            tr("Largest error against the reference"),
                            tr("Largest error as a share of the reference's element"),
                            tr("Largest error in steps between neighbouring numbers of the dtype"),
                            tr("Cosine of the value and the reference's"),
                            tr("RMS error vs f64"),
                            tr("Reference's RMS error vs f64"),
                            {},
                            tr("The node that computes this value in the reference")};
    if (role == Qt::ToolTipRole) return tips[section];
    if (role != Qt::DisplayRole) return isNumericsNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Verdict"),     tr("Value"), tr("Op"),       tr("Max abs"),
                             tr("Max rel"),     tr("ULP"),   tr("Cosine"),   tr("Error vs f64"),
                             tr("Ref. vs f64"), tr("Type"),  tr("Reference")};
    return names[section];
}

}  // namespace cutaway::ui
