// The controller's part for training runs: what their forward saves for the backward, at the run's memory budget and at
// others.
#include "ui/models/words.h"
#include "ui/session/session_ask.h"

namespace cutaway::ui {
namespace {

const QString kCandidate = QStringLiteral("candidate"), kCurve = QStringLiteral("curve");

QString sentence(QString text) {
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    if (!text.isEmpty() && !text.endsWith(QChar('.'))) text += QChar('.');
    return text;
}

/// Why there is no partition, and what to do.
QString reasonOf(const Error& error, const Run* run) {
    const QString why = sentence(QString::fromStdString(error.message));
    if (!run || run->options.mode != Mode::Training)
        return why + QStringLiteral("\n\n") +
               SessionController::tr("Choose Run > Compile With (Ctrl+Shift+B) and there the mode Training.");
    QStringList lines{why};
    if (!run->options.onlyStage.empty())
        lines << SessionController::tr("Compile it with all stages: Run > Compile With (Ctrl+Shift+B).");
    else
        for (const std::string& note : error.notes) lines << sentence(QString::fromStdString(note));
    return lines.join(QStringLiteral("\n\n"));
}

}  // namespace

bool SessionController::isForwardBesideBackward(const Comparison& pair) const {
    const Run* run = pair.before.run == pair.after.run ? runOf(pair.after.run) : nullptr;
    const auto graphNameOf = [&](const Place& place) {
        return run && place.step >= 0 && place.step < static_cast<int>(run->steps.size())
                   ? run->steps[static_cast<size_t>(place.step)].graphName
                   : std::string();
    };
    return graphNameOf(pair.before) == "forward" && graphNameOf(pair.after) == "backward";
}

void SessionController::forgetPartition() {
    m_derivedFrom.clear();
    m_curve.reset();
    m_triedBudget.reset();
    m_candidate.reset();
    m_partition.reset();
    emit partitionShown(nullptr);
}

/// Of the run whose place is shown; once for each run that is turned to.
void SessionController::loadPartition() {
    const Run* run = runOf(m_selection.place().run);
    if (!run) {
        if (m_partition) {
            m_partition.reset();
            m_candidate.reset();
            emit partitionShown(nullptr);
        }
        return;
    }
    if (m_partition && m_partition->run == run->id) return;
    m_triedBudget.reset();
    m_candidate.reset();
    const RunId id = run->id;
    if (m_pending.contains(kCurve) && m_derivedFrom.value(id, id) != m_curveOf) {
        m_pending[kCurve].cancel->cancel();
        ++m_generation[kCurve];
        settled(kCurve);
    }
    ask<RunPartition>(
        Lane::Queries, QStringLiteral("partition"), tr("Reading the partition"),
        [id, known = *run](Source& source, const Progress& progress) -> Result<RunPartition> {
            RunPartition out;
            out.run = id;
            auto own = source.partition(id, progress);
            if (!own) {
                if (own.error().code != ErrorCode::NotFound) return own.error();
                out.problem = reasonOf(own.error(), &known);
                return out;
            }
            out.own = std::move(*own);
            CT_TRY(out.sides, source.sides(id, progress));
            CT_TRY(out.held, source.heldBytes(id, progress));
            return out;
        },
        [this](RunPartition found) {
            m_partition = std::make_shared<const RunPartition>(std::move(found));
            emit partitionShown(m_partition);
        });
}

void SessionController::tryBudget(std::optional<double> budget) {
    if (!m_partition || !m_partition->problem.isEmpty()) return;
    if (!budget || *budget == m_partition->own.budget) {
        m_triedBudget.reset();
        m_candidate.reset();
        return emit candidateShown(nullptr);
    }
    m_triedBudget = budget;
    if (!m_pending.contains(kCandidate)) tryNextBudget();
}

/// One at a time: of what came to be wanted while one was computed, the latest is next.
void SessionController::tryNextBudget() {
    const RunId run = m_partition->run;
    // Queued: m_pending still has this request while its answer is handled.
    const auto next = [this] {
        QMetaObject::invokeMethod(
            this,
            [this] {
                if (m_triedBudget && m_partition && !m_pending.contains(kCandidate)) tryNextBudget();
            },
            Qt::QueuedConnection);
    };
    ask<PartitionChoice>(
        Lane::Queries, kCandidate, tr("Choosing what is saved"),
        [run, budget = *m_triedBudget](Source& source, const Progress& progress) {
            return source.partitionAt(run, budget, progress);
        },
        [this, run, next, budget = *m_triedBudget](PartitionChoice choice) {
            if (!m_triedBudget) return;  // back at the run's own
            if (m_partition && m_partition->run == run) {
                choice.budget = budget;
                m_candidate = std::make_shared<const PartitionChoice>(std::move(choice));
                if (*m_triedBudget == budget) m_triedBudget.reset();
                emit candidateShown(m_candidate);
            }
            next();
        },
        [this] { m_triedBudget.reset(); });
}

void SessionController::deriveWithBudget(double budget) {
    if (!m_partition || !m_partition->problem.isEmpty()) return;
    const Run* run = runOf(m_partition->run);
    if (!run) return;
    CompileRequest options = run->options;
    options.memoryBudget = budget;
    const int step = m_selection.place().step;
    const std::optional<int> split = run->splitStep();
    compileBy(
        [from = run->id, budget](Source& source, const auto& ended, const Progress& progress) {
            return source.deriveWithBudget(from, budget, ended, progress);
        },
        options, {{}, split && step > *split ? split : std::optional<int>(step), run->id});
}

void SessionController::askCurve() {
    if (!m_partition || !m_partition->problem.isEmpty()) return;
    const RunId origin = m_derivedFrom.value(m_partition->run, m_partition->run);
    if (m_curve && m_curve->run == origin) return emit curveShown(m_curve);
    if (m_pending.contains(kCurve) && m_curveOf == origin) return;
    m_curveOf = origin;
    ask<BudgetCurve>(
        Lane::Curves, kCurve, tr("Trying memory budgets"),
        [origin](Source& source, const Progress& progress) -> Result<BudgetCurve> {
            BudgetCurve curve;
            curve.run = origin;
            CT_TRY(curve.points, source.budgetCurve(origin, progress));
            return curve;
        },
        [this](BudgetCurve found) {
            m_curve = std::make_shared<const BudgetCurve>(std::move(found));
            emit curveShown(m_curve);
        });
}

}  // namespace cutaway::ui
