#include <QFileInfo>
#include <map>

#include "ui/models/words.h"
#include "ui/session/session_ask.h"

namespace cutaway::ui {

namespace {

/// What a pass did by other means than rules: named by its rewrites alone.
void addUncounted(std::vector<RuleUse>& uses, const std::vector<RewriteInfo>& rewrites) {
    const size_t counted = uses.size();
    std::map<std::string, size_t> known;
    for (size_t i = 0; i < counted; ++i) known.emplace(uses[i].rule, i);
    for (const RewriteInfo& rewrite : rewrites) {
        const auto [at, fresh] = known.try_emplace(rewrite.rule, uses.size());
        if (fresh) uses.push_back({rewrite.rule, -1, 0, 0, 0});
        if (at->second >= counted) ++uses[at->second].applied;
    }
}

}  // namespace

SessionController::SessionController(std::unique_ptr<Source> source, Selection& selection, QObject* parent)
    : QObject(parent), m_source(std::move(source)), m_selection(selection), m_queue(std::make_unique<JobQueue>()) {
    connect(&selection, &Selection::placeChanged, this, &SessionController::loadPlace);
    connect(&selection, &Selection::nodeChanged, this, &SessionController::loadNode);
}

SessionController::~SessionController() = default;

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

void SessionController::cancel() { stop(true); }

void SessionController::stop(bool keepSteps) {
    if (!isBusy()) return;
    m_queue->cancelAll();
    const QString compile = QStringLiteral("compile");
    const bool kept = keepSteps && m_compiling && m_pending.contains(compile);
    for (auto each = m_pending.cbegin(); each != m_pending.cend(); ++each) {
        if (kept && each.key() == compile) continue;
        ++m_generation[each.key()];
        m_log.append({LogEntry::Level::Note, tr("%1: cancelled").arg(each.value()), {}, {}, {}, NodeId::None});
    }
    m_pending.clear();
    if (kept) {  // its answer is on the way
        m_pending.insert(compile, tr("Stopping the compile"));
        emit progress(m_pending[compile], -1);
        return;
    }
    forgetCompiling();
    emit busyChanged(false);
}

void SessionController::open(const QString& path, const QString& graph) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    stop(false);  // what runs for the model before would only hold the new one up
    OpenSettings settings;
    settings.graph = graph.toStdString();
    ask<ModelInfo>("open", tr("Opening %1").arg(QFileInfo(path).fileName()),
                   [text = absolute.toStdString(), settings](Source& source, const Progress& progress) { return source.open(text, settings, progress); },
                   [this, absolute, path, graph](ModelInfo info) {
                       ++m_epoch;  // what is under way belongs to the model before
                       m_queue->cancelAll();
                       m_pending.clear();
                       forgetCompiling();
                       // A graph that was asked for by name comes alone; the names of its neighbours are known from before.
                       if (graph.isEmpty() || m_path != absolute) {
                           m_graphs.clear();
                           if (info.graphs.size() > 1 && info.graphs.front().name != "main")
                               for (const GraphSummary& each : info.graphs) m_graphs << QString::fromStdString(each.name);
                       }
                       m_graph = graph.isEmpty() ? m_graphs.value(0) : graph;
                       m_path = absolute;
                       m_model = std::move(info);
                       m_runs.clear();
                       m_rulesOf = -1;
                       m_rules.reset();
                       m_shown.reset();
                       m_selection.clear();
                       QString said = tr("Opened %1: %2").arg(QFileInfo(absolute).fileName(), counted(m_model->graphs.empty() ? 0 : m_model->graphs.front().nodes, tr("node"), tr("nodes")));
                       if (!m_graph.isEmpty()) said += tr(", graph %1").arg(m_graph);
                       const bool more = m_graphs.size() > 1;
                       m_log.append({LogEntry::Level::Note, said, path, more ? tr("It holds %1 graphs: File > Open Another Graph of It (Ctrl+Shift+G)").arg(m_graphs.size()) : QString(), {}, NodeId::None});
                       for (const std::string& remark : m_model->remarks)
                           m_log.append({LogEntry::Level::Warning, QString::fromStdString(remark), path, {}, {}, NodeId::None});
                       emit modelOpened();
                       m_selection.setPlace(Place{});
                   });
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

void SessionController::explain() {
    if (!m_selection.hasPlace() || !m_shown) return;
    const Comparison what = m_selection.comparison();
    Explained asked;
    // A rewrite's rule saw the graph right before it, whatever it is compared with.
    asked.before = what.after.rewrites > 0 ? Place{what.after.run, what.after.step, what.after.rewrites - 1} : what.before;
    asked.node = m_selection.node();
    if (const RewriteInfo* rewrite = rewriteAt(what.after)) asked.rule = rewrite->rule;
    const Run* run = runOf(what.after.run);
    const auto step = static_cast<size_t>(what.after.step);
    std::vector<RewriteInfo> done;
    if (run && what.after.step >= 0 && step < run->steps.size()) {
        asked.pass = run->steps[step].name;
        done = run->rewrites[step];
    }
    const CompileOptions options = run ? run->options : CompileOptions{};
    asked.disabled = options.disabledPasses;
    const RunId rulesOf = run ? run->id : -1;
    if (m_rulesOf == rulesOf) asked.infos = m_rules;
    ask<Explained>("explain", tr("Explaining"),
                   [asked, what, options, done = std::move(done), graph = m_shown->graph](Source& source, const Progress& progress) -> Result<Explained> {
                       Explained explained = asked;
                       for (const auto& known : graph->nodes) explained.names.emplace_back(known.info.id, known.info.name);
                       if (explained.node != NodeId::None) {
                           auto answers = source.explain(explained.before, explained.node, progress);
                           // A node that this step made is no failure: the window says that it is not there before.
                           if (!answers && answers.error().code != ErrorCode::NotFound) return answers.error();
                           if (answers) explained.rules = std::move(*answers);
                       }
                       if (!explained.pass.empty()) {
                           CT_TRY(explained.uses, source.ruleUses(what.after.run, what.after.step));
                       }
                       addUncounted(explained.uses, done);
                       if (!explained.infos) explained.infos = std::make_shared<const std::vector<RuleInfo>>(source.rules(options));
                       return explained;
                   },
                   [this, rulesOf](Explained explained) {
                       m_rules = explained.infos;
                       m_rulesOf = rulesOf;
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

}  // namespace cutaway::ui
