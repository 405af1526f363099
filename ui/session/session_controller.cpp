#include <QCryptographicHash>
#include <QFileInfo>
#include <algorithm>
#include <map>

#include "ui/models/words.h"
#include "ui/session/session_ask.h"

namespace cutaway::ui {

namespace {

const QString kOpen = QStringLiteral("open");

/// Adds what only the rewrites of a pass name: no table has it as a rule, and nobody counted how often it was tried.
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

/// Passes that a run with these options leaves out, though nobody switched them off.
std::vector<std::string> inactivePasses(const Source& source, const CompileRequest& options) {
    std::vector<std::string> inactive;
    const std::vector<PassInfo> here = source.passes(options);
    for (const PassInfo& pass : here)
        if (pass.optional && !options.enabled(pass.name)) inactive.push_back(pass.name);
    for (const CompileRequest& other : kindsOfRun())
        for (const PassInfo& pass : source.passes(other)) {
            const auto isThis = [&](const auto& known) { return known.name == pass.name; };
            if (std::none_of(here.begin(), here.end(), isThis) &&
                std::find(inactive.begin(), inactive.end(), pass.name) == inactive.end())
                inactive.push_back(pass.name);
        }
    return inactive;
}

}  // namespace

SessionController::SessionController(std::unique_ptr<Source> source, Selection& selection, QObject* parent)
    : QObject(parent), m_source(std::move(source)), m_selection(selection) {
    for (auto& queue : m_queues) queue = std::make_unique<JobQueue>();
    m_checkedRuns = std::make_unique<CheckedRuns>(*m_source);
    m_coloring = std::make_unique<GraphColoring>(*m_source);
    m_minifySearch = std::make_unique<MinifySearch>(*m_source);
    m_loopQuery = std::make_unique<LoopQuery>(*m_source);
    m_memoryQuery = std::make_unique<MemoryQuery>(*m_source);
    m_kernelQuery = std::make_unique<KernelQuery>(*m_source);
    for (const auto ended : {&SessionController::modelOpened, &SessionController::modelClosed}) {
        connect(this, ended, m_checkedRuns.get(), &CheckedRuns::clear);
        connect(this, ended, m_coloring.get(), &GraphColoring::clear);
        connect(this, ended, m_minifySearch.get(), &MinifySearch::clear);
        connect(this, ended, m_loopQuery.get(), &LoopQuery::clear);
        connect(this, ended, m_memoryQuery.get(), &MemoryQuery::clear);
        connect(this, ended, m_kernelQuery.get(), &KernelQuery::clear);
    }
    connect(&selection, &Selection::placeChanged, this, &SessionController::loadPlace);
    connect(&selection, &Selection::nodeChanged, this, &SessionController::loadNode);
    connect(m_kernelQuery.get(), &KernelQuery::changed, this, [this] {
        if (m_facts && m_kernelQuery->marks(m_selection.place().run)) nodeLoaded(m_shownNode, m_facts);
    });
    connect(this, &SessionController::timed, this, [this](RunId run) {
        if (run == m_selection.place().run) m_kernelQuery->want(run, true);
    });
}

SessionController::~SessionController() = default;

void SessionController::settled(const QString& tag) {
    m_pending.remove(tag);
    emit activitiesChanged();
    if (!isBusy()) emit busyChanged(false);
}

void SessionController::fail(const Error& error, const QString& doing) {
    const LogEntry entry = entryOf(error, doing);
    m_log.append(entry);
    if (entry.level == LogEntry::Level::Problem) emit problem(entry);
}

QVector<Activity> SessionController::activities() const {
    QVector<Activity> list;
    for (const Pending& pending : m_pending) {
        // All looks together are one activity, which began with the earliest of them.
        const auto found =
            std::find_if(list.begin(), list.end(), [&](const Activity& one) { return one.tag == pending.shown.tag; });
        if (found == list.end()) list.append(pending.shown);
        else if (pending.shown.since < found->since) *found = pending.shown;
    }
    std::sort(list.begin(), list.end(), [](const Activity& a, const Activity& b) { return a.since < b.since; });
    return list;
}

/// Stops such work and ignores what it still reports; false if there was none.
bool SessionController::drop(const QString& tag) {
    const auto found = m_pending.find(tag);
    if (found == m_pending.end()) return false;
    const bool again = found->cancel->cancelled();
    found->cancel->cancel();
    ++m_generation[tag];
    m_log.append({LogEntry::Level::Note, tr("%1: cancelled").arg(found->shown.doing), {}, {}, {}, NodeKey::None});
    awaitEnd(*found, again ? kLittlePatience : kPatience);
    m_pending.erase(found);
    return true;
}

void SessionController::cancel(const QString& tag) {
    if (tag == QLatin1String(kQuery)) {
        bool explaining = false;
        m_triedBudget.reset();
        for (const QString& each : m_pending.keys())
            if (m_pending[each].lane == Lane::Queries && m_pending[each].shown.tag == tag)
                explaining |= drop(each) && each == QLatin1String("explain");
        returnToShown();
        if (explaining) {
            Explained nothing;
            nothing.node = m_selection.node();
            nothing.stopped = true;
            emit explained(std::make_shared<const Explained>(std::move(nothing)));
        }
    } else if (tag == QLatin1String("compile") && m_compiling && m_pending.contains(tag) &&
               !m_pending[tag].cancel->cancelled()) {
        // The steps that are done are still to arrive. A second cancel does not wait for them.
        m_pending[tag].cancel->cancel();
        m_pending[tag].shown.doing = tr("Stopping the compile");
        awaitEnd(m_pending[tag], kPatience);
        emit activitiesChanged();
        return;
    } else if (drop(tag) && tag == QLatin1String("compile")) {
        forgetCompiling();
    }
    emit activitiesChanged();
    if (!isBusy()) emit busyChanged(false);
}

namespace {

/// By its text; what has none by its path.
QString keyOf(const Result<GraphText>& graph, const std::string& path) {
    constexpr int kDigits = 16;
    const std::string& known = graph && !graph->text.empty() ? graph->text : path;
    const QByteArray hash = QCryptographicHash::hash(QByteArray::fromStdString(known), QCryptographicHash::Sha256);
    return QString::fromLatin1(hash.toHex().left(kDigits));
}

}  // namespace

void SessionController::open(const QString& path, const QString& graph) {
    const QString absolute = QFileInfo(path).absoluteFilePath();
    OpenSettings settings;
    settings.graph = graph.toStdString();
    // On the queue for looking, so that no request with a place of the old model meets the new one.
    using Opened = std::pair<ModelInfo, QString>;
    ask<Opened>(
        Lane::Queries, kOpen, tr("Opening %1").arg(QFileInfo(path).fileName()),
        [text = absolute.toStdString(), settings](Source& source, const Progress& progress) -> Result<Opened> {
            CT_TRY(ModelInfo info, source.open(text, settings, progress));
            QString key = keyOf(source.text(Place{}, false, progress), text);
            return Opened(std::move(info), std::move(key));
        },
        [this, absolute, graph](Opened all) { opened(absolute, graph, std::move(all.first), all.second); });
    m_pending[kOpen].shown.tag = kOpen;  // to be stopped apart from looks
}

void SessionController::opened(const QString& path, const QString& graph, ModelInfo info, const QString& key) {
    m_modelKey = key;
    dropAll();  // what is under way belongs to the model before
    // A graph that was asked for by name comes alone; its neighbours are known from before.
    if (graph.isEmpty() || m_path != path) {
        m_graphs.clear();
        if (info.graphs.size() > 1 && info.graphs.front().name != "main") m_graphs = info.graphs;
    }
    m_graph = graph.isEmpty() && !m_graphs.empty() ? QString::fromStdString(m_graphs.front().name) : graph;
    m_path = path;
    m_model = std::move(info);
    m_runs.clear();
    m_keptNames.clear();
    m_breakpoints->clearStop();
    m_rulesOf = -1;
    m_rules.reset();
    m_shown.reset();
    forgetPartition();
    m_shownNode = NodeKey::None;
    m_selection.clear();
    QString said =
        tr("Opened %1: %2")
            .arg(QFileInfo(path).fileName(),
                 counted(m_model->graphs.empty() ? 0 : m_model->graphs.front().nodes, tr("node"), tr("nodes")));
    if (!m_graph.isEmpty()) said += tr(", graph %1").arg(m_graph);
    if (!m_model->format.empty()) said += QStringLiteral(", ") + QString::fromStdString(m_model->format);
    const bool more = m_graphs.size() > 1;
    m_log.append(
        {LogEntry::Level::Note,
         said,
         path,
         more ? tr("It holds %1 graphs: File > Open Another Graph (Ctrl+Shift+G).").arg(m_graphs.size()) : QString(),
         {},
         NodeKey::None});
    for (const std::string& remark : m_model->remarks)
        m_log.append({LogEntry::Level::Warning, QString::fromStdString(remark), path, {}, {}, NodeKey::None});
    emit modelOpened();
    m_selection.setPlace(Place{});
    emit activitiesChanged();
    if (more && graph.isEmpty()) emit severalGraphs();
    if (!graph.isEmpty() && m_graphs.empty()) askNeighbours(path);
}

/// The other graphs of a file that was opened at one of them: read behind the first picture.
void SessionController::askNeighbours(const QString& path) {
    ask<ModelInfo>(
        Lane::Queries, QStringLiteral("neighbours"),
        tr("Reading the other graphs of %1").arg(QFileInfo(path).fileName()),
        [text = path.toStdString()](Source& source, const Progress&) -> Result<ModelInfo> {
            auto whole = source.inspect(text);  // what is wrong with another graph stays unsaid
            return whole ? std::move(*whole) : ModelInfo{};
        },
        [this, path](ModelInfo whole) {
            if (path != m_path || whole.graphs.size() < 2 || whole.graphs.front().name == "main") return;
            m_graphs = std::move(whole.graphs);
            emit neighboursKnown();
        });
}

void SessionController::explain() {
    if (!m_selection.hasPlace() || !m_shown) return;
    const Comparison what = m_selection.comparison();
    Explained asked;
    // A rewrite's rule saw the graph right before it, whatever it is compared with.
    asked.before =
        what.after.rewrites > 0 ? Place{what.after.run, what.after.step, what.after.rewrites - 1} : what.before;
    asked.node = m_selection.node();
    if (const RewriteInfo* rewrite = rewriteAt(what.after)) asked.rule = rewrite->rule;
    const Run* run = runOf(what.after.run);
    const auto step = static_cast<size_t>(what.after.step);
    std::vector<RewriteInfo> done;
    if (run && what.after.step >= 0 && step < run->steps.size()) {
        asked.pass = run->steps[step].name;
        done = run->rewrites[step];
    }
    const CompileRequest options = run ? run->options : CompileRequest{};
    asked.nodes = m_shown->nodes;
    asked.disabled = options.disabledPasses;
    asked.inactive = inactivePasses(*m_source, options);
    const RunId rulesOf = run ? run->id : -1;
    if (m_rulesOf == rulesOf) asked.infos = m_rules;
    ask<Explained>(
        Lane::Queries, QStringLiteral("explain"), tr("Explaining"),
        [asked, what, options, done = std::move(done)](Source& source, const Progress& progress) -> Result<Explained> {
            Explained explained = asked;
            if (explained.node != NodeKey::None) {
                auto answers = source.explain(explained.before, explained.node, progress);
                // A node that this step made is not a failure: the window says that it is not there before.
                if (!answers && answers.error().code != ErrorCode::NotFound) return answers.error();
                if (answers) explained.rules = std::move(*answers);
            }
            if (!explained.pass.empty()) {
                CT_TRY(explained.uses, source.ruleUses(what.after.run, what.after.step));
            }
            addUncounted(explained.uses, done);
            if (!explained.infos)
                explained.infos = std::make_shared<const std::vector<RuleInfo>>(source.rules(options));
            return explained;
        },
        [this, rulesOf](Explained explained) {
            m_rules = explained.infos;
            m_rulesOf = rulesOf;
            emit this->explained(std::make_shared<const Explained>(std::move(explained)));
        });
}

}  // namespace cutaway::ui
