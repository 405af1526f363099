// The controller's runs: compiling, their steps and rewrites, and what places are called.
#include <algorithm>

#include "cutaway/backends.h"
#include "ui/models/words.h"
#include "ui/session/kept_requests.h"
#include "ui/session/session_ask.h"

namespace cutaway::ui {
namespace {

QString refusal(const Result<void>& possible) {
    return possible ? QString() : QString::fromStdString(possible.error().message);
}

}  // namespace

QString modeTitle(Mode mode) {
    switch (mode) {
        case Mode::Inference: return QObject::tr("inference");
        case Mode::Training: return QObject::tr("training");
        case Mode::Jvp: return QObject::tr("forward mode (jvp)");
    }
    return {};
}

QString Run::title() const {
    QStringList words = optionWords(options);
    const QString device = options.target == Target::Cuda ? QStringLiteral("CUDA") : QStringLiteral("CPU");
    words.removeOne(device);
    if (options.mode == Mode::Inference) words.prepend(modeTitle(options.mode));
    words.insert(1, device);
    if (stopped) words.insert(2, QObject::tr("stopped"));
    return QObject::tr("Run %1: %2").arg(number).arg(words.join(QStringLiteral(", ")));
}

std::optional<int> Run::lastStepOf(std::string_view graphName) const {
    const auto found =
        std::find_if(steps.rbegin(), steps.rend(), [&](const StepInfo& step) { return step.graphName == graphName; });
    return found == steps.rend() ? std::optional<int>() : found->index;
}

/// Behind it begins the graph of the forward.
std::optional<int> Run::splitStep() const {
    const auto forward =
        std::find_if(steps.begin(), steps.end(), [](const StepInfo& step) { return step.graphName == "forward"; });
    return forward == steps.end() ? std::optional<int>() : forward->index - 1;
}

/// Makes the pass one that runs: an optional one, or one that belongs to frozen runs.
void SessionController::switchOn(const std::string& pass, CompileRequest& options) const {
    const auto find = [&](const CompileRequest& request) -> std::optional<PassInfo> {
        for (const PassInfo& info : m_source->passes(request))
            if (info.name == pass) return info;
        return std::nullopt;
    };
    CompileRequest frozen = options;
    frozen.freeze = true;
    if (!find(options) && checkRequest(frozen) && find(frozen)) options.freeze = true;
    const auto found = find(options);
    if (found && found->optional && !options.enabled(pass)) options.enabledPasses.push_back({pass, {}});
}

void SessionController::compileBy(Compiler compiler, const CompileRequest& options, const AfterCompile& then) {
    forgetCompiling();
    awaitCompile();
    const auto ended = [this, compile = m_compile, options](const StepInfo& step) {
        QMetaObject::invokeMethod(
            this, [=, this] { stepEnded(compile, options, step); }, Qt::QueuedConnection);
    };
    ask<Run>(
        Lane::Compiles, QStringLiteral("compile"), tr("Compiling"),
        [options, ended, compiler = std::move(compiler)](Source& source, const Progress& progress) -> Result<Run> {
            Run run;
            run.options = options;
            CT_TRY(run.id, compiler(source, ended, progress));
            // The steps of a stopped compile are read like any other, so not with its `progress`, which is cancelled.
            const Progress anew;
            CT_TRY(run.stopped, source.wasCancelled(run.id));
            CT_TRY(run.steps, source.steps(run.id));
            for (const StepInfo& step : run.steps) {
                run.rewrites.emplace_back();
                if (step.rewrites == 0) continue;
                CT_TRY(run.rewrites.back(), source.rewrites(run.id, step.index, anew));
            }
            run.notExecuted = refusal(source.canRun(run.id, Backend::Reference));
            run.notTimed = refusal(source.canRun(run.id, compiledBackend(run.options.target)));
            run.notBuilt = refusal(source.canBuild(run.id));
            return run;
        },
        [this, then](Run run) {
            forgetCompiling();
            finishCompile(std::move(run), then, m_awaited == m_moves);
        },
        [this] { forgetCompiling(); });
}

void SessionController::stepEnded(int compile, const CompileRequest& options, const StepInfo& step) {
    if (compile != m_compile) return;
    if (!m_compiling) {
        m_compiling.emplace();
        m_compiling->options = options;
        m_compiling->number = static_cast<int>(m_runs.size()) + 1;
    }
    m_compiling->steps.push_back(step);
    emit compilingChanged();
}

/// Drops the run under way; what its compile still reports is ignored.
void SessionController::forgetCompiling() {
    ++m_compile;
    if (!m_compiling) return;
    m_compiling.reset();
    emit compilingChanged();
}

void SessionController::finishCompile(Run run, const AfterCompile& then, bool show) {
    const RunId id = run.id;
    if (then.derivedFrom) m_derivedFrom[id] = m_derivedFrom.value(*then.derivedFrom, *then.derivedFrom);
    std::erase_if(m_runs, [&](const Run& known) { return known.id == id; });
    run.number = static_cast<int>(m_runs.size()) + 1;
    m_runs.push_back(std::move(run));
    const Run& now = m_runs.back();
    int changed = 0;
    Place first{id, -1, -1};
    std::optional<int> failed;
    for (const StepInfo& step : now.steps) {
        if (step.state == StepState::Changed && ++changed == 1) first.step = step.index;
        if (step.state == StepState::Failed && !failed) failed = step.index;
    }
    m_log.append(
        {LogEntry::Level::Note,
         tr("%1: %2 passes, %3 changed the graph").arg(now.title()).arg(now.steps.size()).arg(changed),
         {},
         now.stopped ? tr("The passes after these did not run; compile again (Ctrl+B) to have them all.") : QString(),
         first,
         NodeKey::None});
    emit compiled(id);
    if (failed) {
        const StepInfo& step = now.steps[static_cast<size_t>(*failed)];
        LogEntry entry{
            LogEntry::Level::Problem,
            tr("%1 failed: %2").arg(QString::fromStdString(step.name), QString::fromStdString(step.error)),
            tr("step %1 of %2").arg(*failed + 1).arg(now.title()),
            !isSchedule(step)
                ? tr("Look at the step, or switch the pass off in the Steps window and compile again.")
                : tr("All passes are done: step through them, or run the graph in the reference interpreter (F5)."),
            Place{id, *failed, -1},
            NodeKey::None};
        m_log.append(entry);
        emit problem(entry);
        first.step = *failed;
    }
    if (showStop(now, then, show)) return;
    if (!show) return emit message(tr("%1 is finished: select it in the Steps window.").arg(now.title()));
    if (then.step && !failed && *then.step < static_cast<int>(now.steps.size())) first.step = *then.step;
    const Run* other = then.comparedWith ? runOf(*then.comparedWith) : nullptr;
    if (other && !failed && !now.stopped && !other->stopped)
        m_selection.compare({{other->id, static_cast<int>(other->steps.size()) - 1, -1},
                             {id, static_cast<int>(now.steps.size()) - 1, -1}});
    else m_selection.setPlace(first);
}

void SessionController::setEnabled(RunId id, const QString& name, bool enabled) {
    const Run* run = runOf(id);
    if (!run) return;
    CompileRequest options = run->options;
    const std::string text = name.toStdString();
    std::erase(options.disabledPasses, text);
    // A rule may also be off by its bare name, or with all of its pass.
    if (enabled && text.find('/') != std::string::npos) {
        std::erase(options.disabledPasses, text.substr(text.find('/') + 1));
        std::erase(options.disabledPasses, text.substr(0, text.find('/')));
    }
    if (!enabled) options.disabledPasses.push_back(text);
    const std::string pass = text.substr(0, text.find('/'));
    if (enabled) switchOn(pass, options);
    compile(options, id);
}

const RewriteInfo* SessionController::rewriteAt(const Place& place) const {
    const Run* run = place.rewrites > 0 ? runOf(place.run) : nullptr;
    if (!run || place.step < 0 || place.step >= static_cast<int>(run->rewrites.size())) return nullptr;
    const auto& rewrites = run->rewrites[static_cast<size_t>(place.step)];
    return place.rewrites <= static_cast<int>(rewrites.size()) ? &rewrites[static_cast<size_t>(place.rewrites) - 1]
                                                               : nullptr;
}

namespace {

/// What a node is at a place, as text; empty where it is not.
Result<std::string> nodeAt(Source& source, const Place& place, NodeKey id, const Progress& progress) {
    const auto found = source.node(place, id, progress);
    if (found) return found->line + "\n" + found->node.op + "\n" + found->node.type;
    if (found.error().code != ErrorCode::NotFound) return found.error();
    return std::string();
}

}  // namespace

void SessionController::findRewrite(RunId run, int step, NodeKey node, std::function<void(int)> then) {
    const Run* known = runOf(run);
    if (!known || step < 0 || step >= static_cast<int>(known->steps.size())) return then(0);
    const int count = known->steps[static_cast<size_t>(step)].rewrites;
    if (count == 0) return then(0);
    ask<int>(
        Lane::Queries, QStringLiteral("find"), tr("Looking for the rewrite"),
        [run, step, node, count](Source& source, const Progress& progress) -> Result<int> {
            CT_TRY(const std::string before, nodeAt(source, {run, step, 0}, node, progress));
            CT_TRY(const std::string after, nodeAt(source, {run, step, -1}, node, progress));
            if (before == after) return 0;
            int untouched = 0, touched = count;
            while (touched - untouched > 1) {
                const int middle = untouched + (touched - untouched) / 2;
                CT_TRY(const std::string now, nodeAt(source, {run, step, middle}, node, progress));
                (now == before ? untouched : touched) = middle;
            }
            return touched;
        },
        std::move(then));
}

const Run* SessionController::runOf(RunId id) const {
    const auto found = std::find_if(m_runs.begin(), m_runs.end(), [&](const Run& run) { return run.id == id; });
    return found == m_runs.end() ? nullptr : &*found;
}

QString SessionController::placeName(const Place& place) const {
    if (isKept(place)) return m_keptNames.value(place.run);
    const Run* run = runOf(place.run);
    QString name = tr("as opened");
    if (place.step >= 0) {
        name = run && place.step < static_cast<int>(run->steps.size())
                   ? QString::fromStdString(run->steps[static_cast<size_t>(place.step)].name)
                   : tr("step %1").arg(place.step);
        if (run && place.step < static_cast<int>(run->steps.size()))
            if (const std::string& graphName = run->steps[static_cast<size_t>(place.step)].graphName;
                graphName == "forward" || graphName == "backward")
                name = tr("%1: %2").arg(QString::fromStdString(graphName), name);
        if (place.rewrites >= 0) name += tr(", rewrite %1").arg(place.rewrites);
    }
    return m_runs.size() > 1 && place.step >= 0 ? tr("%1 (run %2)").arg(name).arg(run ? run->number : 0) : name;
}

}  // namespace cutaway::ui
