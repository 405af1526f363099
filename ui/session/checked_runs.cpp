#include "ui/session/checked_runs.h"

#include <QMutexLocker>
#include <cmath>

namespace cutaway::ui {

void CheckedRuns::begin(const QString& doing) {
    stop();
    const int generation = ++m_generation;
    static_cast<void>(generation);
    m_rows.clear();
    {
        const QMutexLocker lock(&m_mutex);
        m_fresh.clear();
    }
    m_result.reset();
    m_heat.reset();
    m_summary = doing;
    m_fraction = -1;
    m_since.start();
    emit reset();
    emit heatChanged();
}

std::function<void(double, const std::string&)> CheckedRuns::reporter() {
    return [this, generation = m_generation](double fraction, const std::string& what) {
        QMetaObject::invokeMethod(
            this,
            [this, generation, fraction, text = QString::fromStdString(what)] {
                if (generation != m_generation || !isRunning()) return;
                m_fraction = fraction;
                m_summary = text;
                emit changed();
            },
            Qt::QueuedConnection);
    };
}

void CheckedRuns::start(const Place& place, const CheckedRunOptions& options) {
    begin(tr("running the graph beside its reference"));
    m_place = place;
    const int generation = m_generation;
    const auto row = [this, generation](const NodeNumbers& numbers) {
        const QMutexLocker lock(&m_mutex);
        m_fresh.push_back(numbers);
        if (m_fresh.size() == 1)
            QMetaObject::invokeMethod(
                this, [this, generation] { takeRows(generation); }, Qt::QueuedConnection);
    };
    const auto work = [this, place, options, row, generation](const Progress& progress) {
        auto run = std::make_shared<Result<CheckedRun>>(m_source.checkedRun(place, options, row, progress));
        QMetaObject::invokeMethod(
            this,
            [this, run, generation] {
                if (generation != m_generation) return;
                takeRows(generation);
                if (*run) ended(std::move(**run), QString::fromStdString((*run)->summary));
                else failed(run->error());
            },
            Qt::QueuedConnection);
    };
    m_cancel = m_queue.post("checked run", work, reporter());
    emit changed();
}

void CheckedRuns::findFirst(RunId run, const CheckedRunOptions& options) {
    begin(tr("checking after each step"));
    m_place.reset();
    const int generation = m_generation;
    const auto work = [this, run, options, generation](const Progress& progress) {
        auto first = std::make_shared<Result<FirstDivergence>>(m_source.firstDivergence(run, options, progress));
        QMetaObject::invokeMethod(
            this,
            [this, first, generation] {
                if (generation != m_generation) return;
                if (!*first) return failed(first->error());
                m_rows = (*first)->checked.nodes;
                m_place = (*first)->checked.place;
                emit reset();
                ended(std::move((*first)->checked), QString::fromStdString((*first)->summary));
            },
            Qt::QueuedConnection);
    };
    m_cancel = m_queue.post("checked run", work, reporter());
    emit changed();
}

namespace {

/// Derivatives that are not right as rows of the joint graph: what a call's derivative is off by.
CheckedRun asRun(const GradientCheck& check) {
    CheckedRun run;
    run.place = check.place;
    run.summary = check.summary;
    run.remarks = check.remarks;
    for (const GradientRow& row : check.each)
        run.remarks.push_back("gradient of " + row.input + " (" + row.output + ") is " + wordOf(row.verdict) +
                              (row.why.empty() ? "" : ": " + row.why));
    for (const DerivativeRow& row : check.calls) {
        NodeNumbers numbers;
        numbers.node = row.node;
        numbers.name = row.name;
        numbers.op = row.op;
        numbers.type = "by " + row.operand;
        numbers.reference = "central difference";
        numbers.why = row.why;
        numbers.elements = numbers.different = 1;
        numbers.maxAbsolute = std::abs(row.gradient - row.difference);
        numbers.maxRelative = row.difference == 0 ? 0 : numbers.maxAbsolute / std::abs(row.difference);
        numbers.worstValue = row.gradient;
        numbers.worstReference = row.difference;
        const bool wrong = row.verdict == GradientVerdict::Wrong;
        numbers.verdict = wrong ? NodeVerdict::Wrong : NodeVerdict::Close;
        if (wrong && !run.firstDivergent) run.firstDivergent = run.nodes.size();
        run.nodes.push_back(std::move(numbers));
    }
    return run;
}

}  // namespace

void CheckedRuns::checkGradients(RunId run) {
    begin(tr("comparing the gradients with central differences"));
    m_place.reset();
    const int generation = m_generation;
    const auto work = [this, run, generation](const Progress& progress) {
        auto check = std::make_shared<Result<GradientCheck>>(m_source.checkGradients(run, progress));
        QMetaObject::invokeMethod(
            this,
            [this, check, generation] {
                if (generation != m_generation) return;
                if (!*check) return failed(check->error());
                CheckedRun found = asRun(**check);
                m_rows = found.nodes;
                m_place = found.place;
                emit reset();
                const QString summary = QString::fromStdString(found.summary);
                ended(std::move(found), summary);
            },
            Qt::QueuedConnection);
    };
    m_cancel = m_queue.post("gradient check", work, reporter());
    emit changed();
}

void CheckedRuns::takeRows(int generation) {
    if (generation != m_generation) return;
    {
        const QMutexLocker lock(&m_mutex);
        m_rows.insert(m_rows.end(), m_fresh.begin(), m_fresh.end());
        m_fresh.clear();
    }
    emit rowsAdded();
}

void CheckedRuns::ended(CheckedRun run, const QString& summary) {
    m_cancel.reset();
    m_heat = std::make_shared<const HeatMarks>(m_rows);
    m_result = std::move(run);
    m_summary = summary;
    emit changed();
    emit heatChanged();
}

void CheckedRuns::failed(const Error& error) {
    m_cancel.reset();
    m_summary = QString::fromStdString(error.text());
    emit changed();
}

void CheckedRuns::stop() {
    if (!isRunning()) return;
    m_cancel->cancel();
    m_cancel.reset();
    takeRows(m_generation);
    ++m_generation;
    m_heat = std::make_shared<const HeatMarks>(m_rows);
    m_summary = tr("stopped after %1 values").arg(m_rows.size());
    emit changed();
    emit heatChanged();
}

void CheckedRuns::clear() {
    begin({});
    m_values.cancelAll();
    ++m_valueGeneration;
    m_place.reset();
    emit changed();
}

void CheckedRuns::readValue(const Place& place, NodeKey node, ValueSide side) {
    const int generation = ++m_valueGeneration;
    m_values.post("value", [this, place, node, side, generation](const Progress& progress) {
        auto shown = std::make_shared<ShownValue>();
        shown->node = node;
        shown->side = side;
        auto value = m_source.valueAt(place, node, side, {}, progress);
        if (value) shown->value = *value;
        else shown->problem = QString::fromStdString(value.error().text());
        QMetaObject::invokeMethod(
            this,
            [this, shown, generation] {
                if (generation == m_valueGeneration) emit valueShown(shown);
            },
            Qt::QueuedConnection);
    });
}

void CheckedRuns::showHeat(bool shown) {
    m_heatShown = shown;
    emit heatChanged();
}

}  // namespace cutaway::ui
