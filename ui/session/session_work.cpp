// The controller's long work beside compiling: generating code, running, searching. Each goes on beside everything
// else.
#include "cutaway/backends.h"
#include "ui/models/words.h"
#include "ui/session/session_ask.h"

namespace cutaway::ui {
namespace {

/// A note about files that were written, which leads to their folder.
LogEntry written(const QString& what, const QString& folder) {
    LogEntry entry;
    entry.what = what;
    entry.next = QObject::tr("Enter opens the folder");
    entry.folder = folder;
    return entry;
}

}  // namespace

void SessionController::build(RunId run, Target target) {
    ask<BuildInfo>(
        Lane::Executions, QStringLiteral("build"), tr("Generating code"),
        [run, target](Source& source, const Progress& progress) { return source.build(run, target, progress); },
        [this, run](BuildInfo info) { emit built(run, std::make_shared<const BuildInfo>(std::move(info))); });
}

void SessionController::run(RunId run, const RunOptions& options) {
    struct Ran {
        Result<RunReport> report;
        std::optional<BuildInfo> kernels;  // with their times, if it could be run
    };
    const QString doing = options.backend == Backend::Reference ? tr("Running in the reference interpreter")
                          : options.repeat > 1                  ? tr("Timing generated code")
                                                                : tr("Running generated code");
    ask<Ran>(
        Lane::Executions, QStringLiteral("run"), doing,
        [run, options](Source& source, const Progress& progress) -> Result<Ran> {
            Ran ran{source.run(run, options, progress), {}};
            if (!ran.report && (progress.cancelled() || ran.report.error().code == ErrorCode::Cancelled))
                return ran.report.error();
            if (options.backend == Backend::Reference || !options.valuesFile.empty()) return ran;
            // Kernels are there even where a run fails or takes too long.
            if (auto built = source.build(run, targetOf(options.backend), progress)) ran.kernels = *std::move(built);
            else if (ran.report) return built.error();
            return ran;
        },
        [this, run, doing](Ran done) {
            if (done.kernels) emit timed(run, std::make_shared<const BuildInfo>(std::move(*done.kernels)));
            if (!done.report) return fail(done.report.error(), doing);
            emit ran(run, std::make_shared<const RunReport>(*std::move(done.report)));
        });
}

void SessionController::bisect(RunId run, const BisectOptions& options) {
    emit bisecting(run, nullptr);
    const auto told = [this, run](const BisectReport& soFar) {
        auto report = std::make_shared<const BisectReport>(soFar);
        QMetaObject::invokeMethod(this, [this, run, report] { emit bisecting(run, report); });
    };
    ask<BisectReport>(
        Lane::Searches, QStringLiteral("bisect"), tr("Looking for the rewrite that broke the graph"),
        [run, options, told](Source& source, const Progress& progress) {
            return source.bisect(run, options, told, progress);
        },
        [this, run, moves = m_moves](BisectReport report) {
            finishBisect(report, moves == m_moves);
            const auto shared = std::make_shared<const BisectReport>(std::move(report));
            emit bisecting(run, shared);
            emit bisected(shared);
        });
}

void SessionController::finishBisect(const BisectReport& report, bool show) {
    const auto note = [&](LogEntry::Level level, const QString& what, std::optional<Place> place,
                          NodeKey node = NodeKey::None) {
        m_log.append(
            {level, what, place ? placeName(*place) : QString(), QString::fromStdString(report.note), place, node});
    };
    for (const BisectProbe& probe : report.probes)
        note(LogEntry::Level::Note,
             (probe.bad ? tr("The graph after %1 is bad: %2") : tr("The graph after %1 is good: %2"))
                 .arg(counted(probe.rewrites, tr("rewrite"), tr("rewrites")), QString::fromStdString(probe.detail)),
             probe.place.step < 0 ? std::optional<Place>() : probe.place);
    if (!report.found) {
        const QString said =
            report.badAsOpened ? tr("No rewrite to blame: the graph is already bad with all optional rewrites left out")
                               : tr("No rewrite broke the graph: it is good after all %1")
                                     .arg(counted(report.searched, tr("rewrite"), tr("rewrites")));
        emit message(said);
        return note(LogEntry::Level::Note, said, {});
    }
    const QString step = QString::fromStdString(report.step.name);
    const bool whole = report.rewrite.index < 0;
    const Place culprit = whole ? Place{report.culprit.run, report.culprit.step, -1} : report.culprit;
    const QString said =
        whole ? tr("%1 fails before its first rewrite: %2").arg(step, QString::fromStdString(report.step.error))
              : tr("Rewrite %1 of %2 broke the graph: %3 at %4. Found among %5 by %6")
                    .arg(report.rewrite.index + 1)
                    .arg(step, QString::fromStdString(report.rewrite.rule), QString::fromStdString(report.rewrite.node),
                         counted(report.searched, tr("rewrite"), tr("rewrites")),
                         counted(static_cast<qsizetype>(report.probes.size()), tr("test"), tr("tests")));
    note(LogEntry::Level::Warning, said, culprit, whole ? NodeKey::None : report.rewrite.key);
    emit message(show ? said : tr("%1. Double-click it in the Log window to go there.").arg(said));
    if (show) m_selection.go(comparisonAt(culprit), whole ? NodeKey::None : report.rewrite.key);
}

void SessionController::debugCompile(const DebugCompileOptions& options) {
    ask<DebugCompileReport>(
        Lane::Executions, QStringLiteral("debug compile"), tr("Writing a bundle"),
        [options](Source& source, const Progress& progress) { return source.debugCompile(options, progress); },
        [this, folder = QString::fromStdString(options.folder)](const DebugCompileReport& report) {
            for (const SequentialStep& step : report.steps)
                m_log.append(LogEntry::Level::Note,
                             tr("%1: %2").arg(QString::fromStdString(step.name), QString::fromStdString(step.what)));
            if (!report.reloaded)
                m_log.append(LogEntry::Level::Warning, tr("The bundle's graph differs from the model's: %1")
                                                           .arg(QString::fromStdString(report.difference)));
            const QString ran = QString::fromStdString(report.ran);
            if (report.runs) m_log.append(LogEntry::Level::Note, tr("The bundle runs: %1").arg(ran));
            else m_log.append(LogEntry::Level::Warning, tr("The bundle %1").arg(ran));
            m_log.append(written(tr("To minify it: %1").arg(QString::fromStdString(report.command)), folder));
            emit message(report.reloaded && report.runs
                             ? tr("Bundle written to %1; the log has the command that minifies it").arg(folder)
                             : tr("The bundle in %1 failed its check: see the Log window").arg(folder));
        });
}

void SessionController::exportProgram(RunId run, const ExportOptions& options) {
    ask<ExportReport>(
        Lane::Executions, QStringLiteral("export"), tr("Exporting the compiled library"),
        [run, options](Source& source, const Progress& progress) {
            return source.exportProgram(run, options, progress);
        },
        [this, folder = QString::fromStdString(options.folder)](const ExportReport& report) {
            const QString fixed = QString::fromStdString(report.fixedSizes);
            if (!fixed.isEmpty())
                m_log.append(LogEntry::Level::Warning,
                             tr("The exported program accepts only the example input sizes: %1").arg(fixed));
            m_log.append(
                written(tr("Exported to %1: %2, %3")
                            .arg(folder, QString::fromStdString(report.library),
                                 counted(static_cast<qsizetype>(report.files.size()), tr("file"), tr("files"))),
                        QString::fromStdString(report.folder)));
            m_log.append(LogEntry::Level::Note,
                         tr("To build and run it: %1").arg(QString::fromStdString(report.command)));
            const QString checked = QString::fromStdString(sentenceOf(report.check));
            const LogEntry::Level level = !report.check.isGood() ? LogEntry::Level::Problem
                                          : report.check.outcome == ExportCheck::Outcome::Impossible
                                              ? LogEntry::Level::Warning
                                              : LogEntry::Level::Note;
            m_log.append(level, checked);
            emit message(tr("Written to %1. %2 The log opens the folder.").arg(folder, checked));
        });
}

void SessionController::runnableText(const Place& place, std::function<void(const QString&)> then) {
    ask<GraphText>(
        Lane::Queries, QStringLiteral("runnable"), tr("Printing Python"),
        [place](Source& source, const Progress& progress) { return source.text(place, true, progress); },
        [then = std::move(then)](GraphText text) { then(QString::fromStdString(text.text)); });
}

}  // namespace cutaway::ui
