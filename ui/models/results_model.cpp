#include "ui/models/results_model.h"

#include "cutaway/words.h"
#include "ui/models/number_cells.h"
#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

QVariant numberText(double value) { return QString::number(value, 'g', 6); }
bool isResultNumber(int column) { return column >= OutputsModel::Minimum && column <= OutputsModel::Error; }

QVariant resultSortValue(const OutputReport& output, int column) {
    switch (column) {
        case OutputsModel::Minimum: return output.minimum;
        case OutputsModel::Maximum: return output.maximum;
        case OutputsModel::Mean: return output.mean;
        case OutputsModel::NonFinite: return static_cast<qlonglong>(output.nonFinite);
        case OutputsModel::Error: return output.maxAbsoluteError;
        default: return {};
    }
}

}  // namespace

void OutputsModel::setOutputs(std::vector<OutputReport> outputs, std::vector<OutputReport> written,
                              std::vector<OutputReport> gradients) {
    beginResetModel();
    m_outputs = std::move(outputs);
    m_firstWritten = static_cast<int>(m_outputs.size());
    for (OutputReport& value : written) m_outputs.push_back(std::move(value));
    m_firstGradient = static_cast<int>(m_outputs.size());
    for (OutputReport& gradient : gradients) m_outputs.push_back(std::move(gradient));
    endResetModel();
}

int OutputsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_outputs.size());
}
int OutputsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant OutputsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const OutputReport& output = m_outputs[static_cast<size_t>(at.row())];
    if (role == Qt::ToolTipRole && at.column() == Name) return data(at, Qt::DisplayRole);
    if (role == Qt::ToolTipRole) return QString::fromStdString(output.problem.empty() ? output.remark : output.problem);
    if (role == SortRole && isResultNumber(at.column())) return resultSortValue(output, at.column());
    if (role != Qt::DisplayRole && role != SortRole) return isResultNumber(at.column()) ? numberCell(role) : QVariant();
    switch (at.column()) {
        case Name: {
            const QString name = QString::fromStdString(output.name);
            // The names come first: where the column is narrow, the middle is left out.
            if (at.row() >= m_firstGradient) return name + QStringLiteral(".grad");
            return at.row() < m_firstWritten ? name : tr("%1 (new)").arg(name);
        }
        case Type: return QString::fromStdString(output.type);
        case Minimum: return numberText(output.minimum);
        case Maximum: return numberText(output.maximum);
        case Mean: return numberText(output.mean);
        case NonFinite: return QString::number(output.nonFinite);
        case Error: return output.compared ? numberText(output.maxAbsoluteError) : QVariant();
        case Verdict:
            if (!output.problem.empty()) return QStringLiteral("✗ ") + QString::fromStdString(output.problem);
            if (!output.compared) return tr("not compared");
            if (output.within && !output.remark.empty()) return tr("✓ %1").arg(QString::fromStdString(output.remark));
            return output.within ? tr("✓ within tolerance") : tr("✗ outside tolerance");
        default: return {};
    }
}

QString timesText(const RunReport& report) {
    constexpr int kFew = 4;          // runs, of which no quartiles can be told
    constexpr double kQuiet = 0.25;  // of the median: what half of the runs of an idle machine stay within
    const QString median = durationText(report.medianMilliseconds);
    if (report.repeats <= 1) return median;
    if (report.repeats < kFew)
        return OutputsModel::tr("median %1, fastest %2 of %3 runs")
            .arg(median, durationText(report.minMilliseconds))
            .arg(report.repeats);
    const double spread = report.thirdQuartile - report.firstQuartile;
    QString text = OutputsModel::tr("median %1, half of %2 runs %3 to %4")
                       .arg(median, QString::number(report.repeats), durationText(report.firstQuartile),
                            durationText(report.thirdQuartile));
    if (report.medianMilliseconds > 0 && spread > kQuiet * report.medianMilliseconds)
        text += OutputsModel::tr(" – the machine is busy: times vary by %1, so time again when it is idle")
                    .arg(shareText(spread / report.medianMilliseconds));
    return text;
}

QString trainingText(const TrainingReport& report) {
    return QStringList{OutputsModel::tr("loss %1 (%2)")
                           .arg(numberText(report.loss).toString(), QString::fromStdString(report.lossFrom)),
                       OutputsModel::tr("forward %1, backward %2")
                           .arg(durationText(report.forwardMilliseconds), durationText(report.backwardMilliseconds)),
                       OutputsModel::tr("saved activations: measured %1, estimated %2")
                           .arg(sizeText(report.savedBytes), sizeText(report.estimatedSavedBytes)),
                       OutputsModel::tr("saved including inputs: %1").arg(sizeText(report.heldBytes))}
        .join(QStringLiteral(" · "));
}

QVariant OutputsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role != Qt::DisplayRole) return isResultNumber(section) ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Output"), tr("Type"),       tr("Min"),       tr("Max"),
                             tr("Mean"),   tr("Non-finite"), tr("Max error"), tr("Against expectation")};
    return section >= 0 && section < ColumnCount ? names[section] : QVariant();
}

}  // namespace cutaway::ui
