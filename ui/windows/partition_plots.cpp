// The plots of the Partition window.
#include <algorithm>
#include <cmath>

#include "cutaway/words.h"
#include "ui/models/units.h"
#include "ui/models/words.h"
#include "ui/windows/partition_window.h"
#include "ui/windows/plot_view.h"

namespace cutaway::ui {
namespace {

QString nodes(size_t count) {
    return counted(static_cast<qsizetype>(count), PartitionWindow::tr("node"), PartitionWindow::tr("nodes"));
}
QString numberText(double value) {
    return value >= 1000 ? countText(static_cast<int64_t>(value)) : QString::number(value, 'g', 4);
}
QString budgetText(double budget) { return QString::number(budget, 'f', 3); }

}  // namespace

/// The cost of computing again with this budget, never less than with a larger one: a partition that ignores the
/// estimates, as at budget 0, reports no cost.
double PartitionWindow::costOf(double budget, double runtime, size_t recomputed) const {
    double cost = m_byNodes ? static_cast<double>(recomputed) : runtime;
    for (const BudgetPoint& point : m_points)
        if (point.budget > budget)
            cost = std::max(cost, m_byNodes ? static_cast<double>(point.recomputed) : point.recomputedRuntime);
    return cost;
}

/// More recomputation to the right: from what is saved at budget 1 to what is at 0.
void PartitionWindow::showCurve(const BudgetCurve& curve) {
    m_points = curve.points;
    std::reverse(m_points.begin(), m_points.end());
    m_byNodes = std::all_of(m_points.begin(), m_points.end(),
                            [](const BudgetPoint& point) { return point.recomputedRuntime == 0; });
    Plot plot;
    plot.cornered = true;  // between two budgets that differ all save as one of them does
    plot.up = tr("Activations saved");
    plot.across = m_byNodes ? tr("nodes computed again") : tr("estimated cost of computing again");
    int64_t most = 0;
    for (const BudgetPoint& point : m_points) {
        const double x = costOf(point.budget, point.recomputedRuntime, point.recomputed);
        plot.points.push_back({x, static_cast<double>(point.activationBytes),
                               tr("budget %1: %2, %3 computed again, cost %4")
                                   .arg(budgetText(point.budget), sizeText(point.activationBytes),
                                        nodes(point.recomputed), numberText(x))});
        most = std::max(most, point.activationBytes);
    }
    if (!plot.points.empty()) {
        plot.least = numberText(plot.points.front().x);
        plot.most = numberText(plot.points.back().x);
    }
    plot.top = sizeText(most);
    m_curve->setPlot(std::move(plot));
    markCurve();
}

void PartitionWindow::markCurve() {
    const auto& now = m_controller.partition();
    if (m_points.empty() || !now || !now->problem.isEmpty()) return m_curve->setMarks({});
    const auto markOf = [&](const PartitionChoice& choice, bool filled) {
        return PlotMark{costOf(choice.budget, choice.recomputedRuntime, choice.recomputed.size()),
                        static_cast<double>(choice.activationBytes), budgetText(choice.budget), filled};
    };
    std::vector<PlotMark> marks = {markOf(now->own, true)};
    if (const auto& tried = m_controller.candidate()) marks.push_back(markOf(*tried, false));
    m_curve->setMarks(std::move(marks));
}

void PartitionWindow::showHeld() {
    const std::vector<SavedBytes>& held = m_controller.partition()->held;
    Plot plot;
    plot.stepped = true;
    plot.up = tr("Bytes held for the backward");
    plot.across = counted(static_cast<qsizetype>(held.size()), tr("call"), tr("calls in order"));
    plot.least = tr("forward");
    plot.most = tr("backward");
    size_t peak = 0;
    for (size_t i = 0; i < held.size(); ++i) {
        const SavedBytes& one = held[i];
        if (one.bytes > held[peak].bytes) peak = i;
        if (one.backward && plot.divider < 0) plot.divider = static_cast<double>(i) - 0.5;
        plot.points.push_back(
            {static_cast<double>(i), static_cast<double>(one.bytes),
             tr("after %1 (%2): %3")
                 .arg(QString::fromStdString(one.name), one.backward ? plot.most : plot.least, sizeText(one.bytes))});
    }
    std::vector<PlotMark> marks;
    if (!held.empty())
        marks.push_back({static_cast<double>(peak), static_cast<double>(held[peak].bytes),
                         tr("peak %1").arg(sizeText(held[peak].bytes)), true});
    m_held->setHint(tr("Forward and backward have no calls to plot."));
    m_held->setPlot(std::move(plot));
    m_held->setMarks(std::move(marks));
    showNode(m_selection.node());
}

}  // namespace cutaway::ui
