#include "ui/session/session_controller.h"

#include <QFileInfo>
#include <QMetaObject>
#include <algorithm>

#include "ui/models/words.h"

namespace cutaway::ui {

QString Run::title() const {
    QString text = QObject::tr("Run %1: %2, %3").arg(number).arg(options.mode == Mode::Training ? QObject::tr("training") : QObject::tr("inference"),
                                                          options.target == Target::Cuda ? QStringLiteral("CUDA") : QStringLiteral("CPU"));
    if (options.freeze) text += QObject::tr(", frozen");
    if (!options.disabledPasses.empty()) text += QObject::tr(", %1 off").arg(counted(static_cast<qsizetype>(options.disabledPasses.size()), QObject::tr("pass"), QObject::tr("passes")));
    return text;
}

SessionController::SessionController(std::unique_ptr<Source> source, Selection& selection, QObject* parent)
    : QObject(parent), m_source(std::move(source)), m_selection(selection), m_queue(std::make_unique<JobQueue>()) {
    connect(&selection, &Selection::placeChanged, this, &SessionController::loadPlace);
    connect(&selection, &Selection::nodeChanged, this, &SessionController::loadNode);
}

SessionController::~SessionController() = default;

template <class T>
void SessionController::ask(const QString& tag, const QString& doing, std::function<Result<T>(Source&, const Progress&)> work,
                            std::function<void(T)> then, std::function<void()> orElse) {
    const bool wasBusy = isBusy();
    const int generation = ++m_generation[tag], epoch = m_epoch;
    m_pending.insert(tag, doing);
    auto job = [this, tag, doing, generation, epoch, work = std::move(work), then = std::move(then), orElse = std::move(orElse)](const Progress& progress) {
        auto result = std::make_shared<Result<T>>(work(*m_source, progress));
        QMetaObject::invokeMethod(this, [=, this] {
            if (epoch != m_epoch || generation != m_generation.value(tag)) return;
            if (*result) {
                then(std::move(**result));
            } else {
                fail(result->error(), doing);
                if (orElse) orElse();
            }
            settled(tag);
        }, Qt::QueuedConnection);
    };
    auto report = [this, epoch, doing](double fraction, const std::string& what) {
        const QString text = what.empty() ? doing : QString::fromStdString(what);
        QMetaObject::invokeMethod(this, [=, this] {
            if (epoch == m_epoch && isBusy()) emit progress(text, fraction);
        }, Qt::QueuedConnection);
    };
    m_queue->post(tag.toStdString(), std::move(job), std::move(report));
    emit progress(doing, -1);
    if (!wasBusy) emit busyChanged(true);
}

void SessionController::settled(const QString& tag) {
    m_pending.remove(tag);
    if (!isBusy())
        emit busyChanged(false);
    else
        emit progress(*m_pending.constBegin(), -1);
}

void SessionController::fail(const Error& error, const QString& doing) {
    const LogEntry entry = entryOf(error, doing);
    m_log.append(entry);
    if (entry.level == LogEntry::Level::Problem) emit problem(entry);
}

void SessionController::cancel() {
    if (!isBusy()) return;
    m_queue->cancelAll();
    ++m_epoch;
    for (const QString& doing : std::as_const(m_pending)) m_log.append({LogEntry::Level::Note, tr("%1: cancelled").arg(doing), {}, {}, {}, NodeId::None});
    m_pending.clear();
    emit busyChanged(false);
}

void SessionController::open(const QString& path) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    cancel();  // what runs for the model before would only hold the new one up
    ask<ModelInfo>("open", tr("Opening %1").arg(QFileInfo(path).fileName()),
                   [text = absolute.toStdString()](Source& source, const Progress& progress) { return source.open(text, progress); },
                   [this, absolute, path](ModelInfo info) {
                       ++m_epoch;  // what is under way belongs to the model before
                       m_queue->cancelAll();
                       m_pending.clear();
                       m_path = absolute;
                       m_model = std::move(info);
                       m_runs.clear();
                       m_shown.reset();
                       m_selection.clear();
                       m_log.append({LogEntry::Level::Note, tr("Opened %1: %2 nodes").arg(QFileInfo(absolute).fileName()).arg(m_model->graphs.empty() ? 0 : m_model->graphs.front().nodes), path, {}, {}, NodeId::None});
                       for (const std::string& remark : m_model->remarks)
                           m_log.append({LogEntry::Level::Warning, QString::fromStdString(remark), path, {}, {}, NodeId::None});
                       emit modelOpened();
                       m_selection.setPlace(Place{});
                   });
}

void SessionController::compile(const CompileOptions& options, std::optional<RunId> comparedWith) {
    ask<Run>("compile", tr("Compiling"),
             [options](Source& source, const Progress& progress) -> Result<Run> {
                 Run run;
                 run.options = options;
                 CT_TRY(run.id, source.compile(options, progress));
                 CT_TRY(run.steps, source.steps(run.id));
                 return run;
             },
             [this, comparedWith](Run run) { finishCompile(std::move(run), comparedWith); });
}

void SessionController::finishCompile(Run run, std::optional<RunId> comparedWith) {
    const RunId id = run.id;
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
    m_log.append({LogEntry::Level::Note, tr("%1: %2 passes, %3 changed the graph").arg(now.title()).arg(now.steps.size()).arg(changed), {}, {}, first, NodeId::None});
    emit compiled(id);
    if (failed) {
        const StepInfo& step = now.steps[static_cast<size_t>(*failed)];
        LogEntry entry{LogEntry::Level::Problem, tr("%1 failed: %2").arg(QString::fromStdString(step.name), QString::fromStdString(step.error)),
                       tr("step %1 of %2").arg(*failed).arg(now.title()), tr("Look at the step, or switch the pass off in the Steps window and compile again."), Place{id, *failed, -1}, NodeId::None};
        m_log.append(entry);
        emit problem(entry);
        first.step = *failed;
    }
    const Run* other = comparedWith ? runOf(*comparedWith) : nullptr;
    if (other && !failed)
        m_selection.compare({{other->id, static_cast<int>(other->steps.size()) - 1, -1}, {id, static_cast<int>(now.steps.size()) - 1, -1}});
    else
        m_selection.setPlace(first);
}

void SessionController::loadPlace() {
    if (!m_selection.hasPlace() || !m_model) return;
    const Comparison what = m_selection.comparison();
    ask<UnionGraph>("diff", tr("Comparing graphs"),
                    [what](Source& source, const Progress& progress) { return source.diff(what.before, what.after, progress); },
                    [this, what](UnionGraph graph) {
                        m_shown = std::make_shared<const Shown>(Shown{what, std::make_shared<const UnionGraph>(std::move(graph))});
                        emit shown(m_shown);
                        loadNode();
                    });
    ask<QVector<DiffLine>>("text", tr("Printing graphs"),
                           [what](Source& source, const Progress& progress) -> Result<QVector<DiffLine>> {
                               CT_TRY(const GraphText after, source.text(what.after, false, progress));
                               if (what.before == what.after) return diffTexts(after, after);
                               CT_TRY(const GraphText before, source.text(what.before, false, progress));
                               return diffTexts(before, after);
                           },
                           [this, what](QVector<DiffLine> lines) { emit textShown(std::make_shared<const ShownText>(ShownText{what, std::move(lines)})); });
}

void SessionController::loadNode() {
    const NodeId id = m_selection.node();
    if (id == NodeId::None || !m_shown || !m_selection.hasPlace()) {
        emit nodeShown(std::make_shared<const NodeFacts>());
        return;
    }
    const Run* run = runOf(m_selection.place().run);
    ask<NodeFacts>("node", tr("Reading the node"),
                   [what = m_selection.comparison(), id, graph = m_shown->graph, steps = run ? run->steps : std::vector<StepInfo>()](
                       Source& source, const Progress& progress) -> Result<NodeFacts> {
                       NodeFacts facts;
                       facts.steps = steps;
                       for (const auto& node : graph->nodes) facts.names.emplace_back(node.info.id, node.info.name);
                       auto after = source.node(what.after, id, progress);
                       auto before = what.before == what.after ? after : source.node(what.before, id, progress);
                       if (!after && !before) {
                           // A node of another step is no failure: the window shows that it is not here.
                           if (after.error().code != ErrorCode::NotFound) return after.error();
                           return facts;
                       }
                       if (after) facts.after = std::move(*after);
                       if (before) facts.before = std::move(*before);
                       return facts;
                   },
                   [this](NodeFacts facts) { emit nodeShown(std::make_shared<const NodeFacts>(std::move(facts))); });
}

void SessionController::loadRewrites(RunId run, int step) {
    ask<std::vector<RewriteInfo>>("rewrites", tr("Replaying rewrites"),
                                  [run, step](Source& source, const Progress& progress) { return source.rewrites(run, step, progress); },
                                  [this, run, step](std::vector<RewriteInfo> rewrites) { emit rewritesReady(run, step, rewrites); },
                                  [this, run, step] { emit rewritesReady(run, step, {}); });
}

void SessionController::explain() {
    if (!m_selection.hasPlace() || !m_shown) return;
    const Comparison what = m_selection.comparison();
    const Run* run = runOf(what.after.run);
    std::string pass;
    if (run && what.after.step >= 0 && what.after.step < static_cast<int>(run->steps.size())) pass = run->steps[static_cast<size_t>(what.after.step)].name;
    ask<Explained>("explain", tr("Explaining"),
                   [what, pass, node = m_selection.node(), graph = m_shown->graph, rules = m_rules](Source& source, const Progress& progress) -> Result<Explained> {
                       Explained explained;
                       explained.before = what.before;
                       explained.pass = pass;
                       explained.node = node;
                       for (const auto& known : graph->nodes) explained.names.emplace_back(known.info.id, known.info.name);
                       if (node != NodeId::None) {
                           auto answers = source.explain(what.before, node, progress);
                           // A node that this step made is no failure: the window says that it is not there before.
                           if (!answers && answers.error().code != ErrorCode::NotFound) return answers.error();
                           if (answers) explained.rules = std::move(*answers);
                       }
                       if (!pass.empty()) {
                           CT_TRY(explained.uses, source.ruleUses(what.after.run, what.after.step));
                       }
                       explained.infos = rules ? rules : std::make_shared<const std::vector<RuleInfo>>(source.rules());
                       return explained;
                   },
                   [this](Explained explained) {
                       m_rules = explained.infos;
                       emit this->explained(std::make_shared<const Explained>(std::move(explained)));
                   });
}

void SessionController::build(RunId run, Target target) {
    ask<BuildInfo>("build", tr("Generating code"),
                   [run, target](Source& source, const Progress& progress) { return source.build(run, target, progress); },
                   [this, run](BuildInfo info) { emit built(run, std::make_shared<const BuildInfo>(std::move(info))); });
}

void SessionController::run(RunId run, const RunOptions& options) {
    ask<RunReport>("run", tr("Running"),
                   [run, options](Source& source, const Progress& progress) { return source.run(run, options, progress); },
                   [this, run](RunReport report) { emit ran(run, std::make_shared<const RunReport>(std::move(report))); });
}

void SessionController::bisect(RunId run, const BisectOptions& options) {
    ask<BisectReport>("bisect", tr("Bisecting"),
                      [run, options](Source& source, const Progress& progress) { return source.bisect(run, options, progress); },
                      [this](BisectReport report) {
                          finishBisect(report);
                          emit bisected(std::make_shared<const BisectReport>(std::move(report)));
                      });
}

void SessionController::finishBisect(const BisectReport& report) {
    const auto note = [&](LogEntry::Level level, const QString& what, std::optional<Place> place, NodeId node = NodeId::None) {
        m_log.append({level, what, place ? placeName(*place) : QString(), QString::fromStdString(report.note), place, node});
    };
    for (const BisectProbe& probe : report.probes)
        note(LogEntry::Level::Note, (probe.bad ? tr("Bad after %1 rewrites: %2") : tr("Good after %1 rewrites: %2")).arg(probe.rewrites).arg(QString::fromStdString(probe.detail)), probe.place);
    if (!report.found) return note(LogEntry::Level::Note, tr("Nothing to find: the graph after all %1 rewrites is good").arg(report.searched), {});
    const QString step = QString::fromStdString(report.step.name);
    if (report.rewrite.index < 0) {
        note(LogEntry::Level::Warning, tr("%1 fails before its first rewrite: %2").arg(step, QString::fromStdString(report.step.error)), report.culprit);
    } else {
        note(LogEntry::Level::Warning, tr("The culprit among %1 rewrites: %2 at %3, rewrite %4 of %5").arg(report.searched).arg(QString::fromStdString(report.rewrite.rule), QString::fromStdString(report.rewrite.node)).arg(report.rewrite.index + 1).arg(step), report.culprit, report.rewrite.nodeId);
        m_selection.setPlace(report.culprit);
    }
}

void SessionController::runnableText(const Place& place, std::function<void(const QString&)> then) {
    ask<GraphText>("runnable", tr("Printing Python"),
                   [place](Source& source, const Progress& progress) { return source.text(place, true, progress); },
                   [then = std::move(then)](GraphText text) { then(QString::fromStdString(text.text)); });
}

QStringList SessionController::stages() const {
    QStringList names;
    for (const StepInfo& pass : m_source->passes())
        if (const QString stage = QString::fromStdString(pass.stage); !names.contains(stage)) names << stage;
    return names;
}

const Run* SessionController::runOf(RunId id) const {
    const auto found = std::find_if(m_runs.begin(), m_runs.end(), [&](const Run& run) { return run.id == id; });
    return found == m_runs.end() ? nullptr : &*found;
}

QString SessionController::placeName(const Place& place) const {
    const Run* run = runOf(place.run);
    QString name = tr("as opened");
    if (place.step >= 0) {
        name = run && place.step < static_cast<int>(run->steps.size()) ? QString::fromStdString(run->steps[static_cast<size_t>(place.step)].name) : tr("step %1").arg(place.step);
        if (place.rewrites >= 0) name += tr(", rewrite %1").arg(place.rewrites);
    }
    return m_runs.size() > 1 && place.step >= 0 ? tr("%1 (run %2)").arg(name).arg(run ? run->number : 0) : name;
}

}  // namespace cutaway::ui
