#include "cutaway/session.h"

#include <numeric>

#include "cutaway/guarded.h"
#include "cutaway/operator_files.h"
#include "cutaway/words.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/passes/pipeline.h"
#include "engine/plugins/plugin_calls.h"
#include "engine/session/arguments.h"
#include "engine/session/constant_values.h"
#include "engine/session/describe.h"
#include "engine/session/lent_hooks.h"
#include "engine/session/node_history.h"
#include "engine/session/session_state.h"
#include "engine/support/fault_points.h"
#include "engine/text/print.h"

namespace cutaway {
Result<const Session::State::Run*> Session::State::run(RunId id) const {
    const std::lock_guard lock(mutex);
    if (id < 0 || id >= static_cast<RunId>(runs.size()))
        return Error{ErrorCode::NotFound, "no run " + std::to_string(id), {}, {"compile the model first"}};
    return &runs[static_cast<size_t>(id)];
}

Result<Session::State::Run*> Session::State::run(RunId id) {
    CT_TRY(const Run* found, std::as_const(*this).run(id));
    return const_cast<Run*>(found);
}

size_t Session::State::runCount() const {
    const std::lock_guard lock(mutex);
    return runs.size();
}

RunId Session::State::add(CompileTrace trace) {
    const std::lock_guard lock(mutex);
    runs.emplace_back().trace = std::move(trace);
    return static_cast<RunId>(runs.size()) - 1;
}

namespace {

/// A compilation of the graph that failed; with the trace, what its passes asked and were answered.
Failure compileFailure(const Snapshot& graph, const CompileRequest& request, const CompileTrace* trace) {
    Failure failure;
    failure.operation = "compile";
    failure.graph = graph;
    failure.request = request;
    if (trace)
        for (const Step& step : trace->steps)
            failure.measurements.insert(failure.measurements.end(), step.measurements.begin(), step.measurements.end());
    return failure;
}

}  // namespace

Failure Session::State::failureOf(const char* operation, RunId id, const RunOptions* options) const {
    const auto found = run(id);
    Failure failure =
        found ? compileFailure(input, (*found)->trace.request, &(*found)->trace) : compileFailure(input, {}, nullptr);
    failure.operation = operation;
    if (options) failure.run = *options;
    return failure;
}

Result<Snapshot> Session::State::snapshot(const Place& place, const CancelToken* cancel) const {
    if (isKept(place)) return keptAt(place);
    if (!input) return Error{ErrorCode::NotFound, "no model is open", {}, {}};
    if (place.step < 0) {
        const auto of = place.run < 0 ? Result<const Run*>(nullptr) : run(place.run);
        return of && *of ? (*of)->trace.input : input;  // the request may define operators that it calls
    }
    CT_TRY(const Run* found, run(place.run));
    if (place.step >= static_cast<int>(found->trace.steps.size()))
        return Error{ErrorCode::NotFound,
                     "run " + std::to_string(place.run) + " has no step " + std::to_string(place.step),
                     {},
                     {}};
    const Step& step = found->trace.steps[static_cast<size_t>(place.step)];
    if (place.rewrites < 0) return step.after;
    {
        const std::lock_guard lock(mutex);
        for (const auto& [known, graph] : replayed)
            if (known == place) return graph;
    }
    CT_TRY(Snapshot graph, replayRewrites(step, found->trace, place.rewrites, cancel));
    constexpr size_t kKept = 4;
    const std::lock_guard lock(mutex);
    if (replayed.size() >= kKept) replayed.erase(replayed.begin());
    replayed.emplace_back(place, graph);
    return graph;
}

Session::Session() : m_state(std::make_unique<State>()) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

namespace {

/// The file's values as tensors, numbers as 0-d ones, None as undefined ones; empty if one is something else.
std::vector<Tensor> sampleTensors(const std::vector<SavedValue>& values) {
    std::vector<Tensor> tensors;
    for (const SavedValue& value : values) {
        if (const Tensor* tensor = value.tensor()) tensors.push_back(*tensor);
        else if (const auto* integer = std::get_if<int64_t>(&value.kind))
            tensors.push_back(Tensor::scalar(DType::I64, *integer));
        else if (const auto* real = std::get_if<double>(&value.kind))
            tensors.push_back(Tensor::scalar(DType::F64, *real));
        else if (const auto* flag = std::get_if<bool>(&value.kind))
            tensors.push_back(Tensor::scalar(DType::Bool, *flag));
        else if (value.isNone()) tensors.emplace_back();
        else return {};
    }
    return tensors;
}

/// Names of all bodies of a graph, as describeFile lists them, and what each of them lies in.
using Bodies = std::vector<std::pair<std::string, std::pair<const Module*, const Module*>>>;
void addBodies(const std::string& prefix, const Module& module, Bodies& out) {
    for (const auto& [key, body] : module.subgraphs) {
        const std::string name = prefix.empty() ? key : prefix + "." + key;
        out.push_back({name, {body.get(), &module}});
        addBodies(name, *body, out);
    }
}
/// A body as a graph of its own, with what it knows from the one around it.
std::unique_ptr<Module> alone(const Module& body, const Module& around, const std::string& name) {
    auto module = std::make_unique<Module>(body);
    module->name = name;
    module->origin = around.origin;
    module->inputs.resize(module->graph().placeholders().size());
    module->outputs.resize(module->graph().outputs().size());
    module->tensors.insert(around.tensors.begin(), around.tensors.end());
    module->symbols.insert(around.symbols.begin(), around.symbols.end());
    return module;
}

/// A file that a plugin reads, with the graph that the settings name alone.
Result<OpenedFile> importChosen(const std::string& path, const OpenSettings& settings, const Progress& progress) {
    CT_TRY(OpenedFile file, importFile(path, progress));
    if (settings.graph.empty()) return file;
    std::vector<std::string_view> names;
    for (const OpenedGraph& graph : file.graphs) names.push_back(graph.name);
    const auto found = std::find(names.begin(), names.end(), settings.graph);
    if (found != names.end()) {
        std::swap(file.graphs.front(), file.graphs[static_cast<size_t>(found - names.begin())]);
        file.graphs.resize(1);
        return file;
    }
    Error error{ErrorCode::NotFound, "no graph named '" + visibleText(settings.graph) + "'", path, {}};
    if (std::string near = suggestion(settings.graph, names); !near.empty()) error.notes.push_back(std::move(near));
    return error;
}

/// Opens the file at the graph that the settings name; an unknown name is refused with those that there are.
Result<OpenedFile> openChosen(const std::string& path, const OpenSettings& settings, const Progress& progress) {
    CT_TRY(const RecognisedFile recognisedFile, RecognisedFile::at(path));
    // Text is recognised by what it looks like, which an importer may know better.
    const bool isText = recognisedFile.format() == FileFormat::FxText || recognisedFile.format() == FileFormat::Log;
    if ((isText || recognisedFile.format() == FileFormat::Unknown) && hasImporter(path))
        return importChosen(path, settings, progress);
    auto file = recognisedFile.open({.graph = settings.graph});
    if (settings.graph.empty()) return file;
    const auto names = [](const OpenedFile& opened) {
        std::vector<std::string_view> out;
        for (const OpenedGraph& graph : opened.graphs) out.push_back(graph.name);
        return out;
    };
    if (file) {
        const auto there = names(*file);
        if (std::find(there.begin(), there.end(), settings.graph) != there.end()) return file;
    } else if (file.error().code != ErrorCode::NotFound) return file;
    // Opens without naming a graph, since readers skip the others and here all names are needed.
    CT_TRY(OpenedFile whole, recognisedFile.open());
    // What describeFile calls the only graph of a file.
    if (whole.graphs.size() == 1 && settings.graph == "main") return whole;
    Bodies bodies;
    for (const OpenedGraph& graph : whole.graphs)
        addBodies(whole.graphs.size() == 1 ? std::string() : graph.name, *graph.module, bodies);
    for (const auto& [name, body] : bodies) {
        if (name != settings.graph) continue;
        OpenedGraph graph{name, alone(*body.first, *body.second, name), {}};
        whole.graphs.clear();
        whole.graphs.push_back(std::move(graph));
        return whole;
    }
    auto there = names(whole);
    for (const auto& [name, body] : bodies) there.push_back(name);
    Error error{ErrorCode::NotFound, "no graph named '" + visibleText(settings.graph) + "'", path, {}};
    if (std::string near = suggestion(settings.graph, there); !near.empty()) error.notes.push_back(std::move(near));
    std::string all;
    for (const std::string_view name : there) all += (all.empty() ? "it holds: " : ", ") + visibleText(name);
    if (!all.empty()) error.notes.push_back(std::move(all));
    return error;
}

/// Turns the symbols that the user set into numbers; sample inputs of other sizes are dropped.
Result<void> setSizes(OpenedGraph& graph, const SymbolValues& sizes, std::vector<Tensor>& samples) {
    if (sizes.empty()) return {};
    Module& module = *graph.module;
    const std::vector<std::string> symbols = freeSymbols(module);
    for (const auto& [symbol, value] : sizes)
        if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) {
            std::string known;
            for (const std::string& each : symbols) known += (known.empty() ? "" : ", ") + each;
            return Error{ErrorCode::NotFound,
                         "the graph has no size symbol '" + symbol + "'",
                         {},
                         {known.empty() ? "all its sizes are numbers" : "it has: " + known}};
        }
    CT_TRY_VOID(specialize(module, sizes));
    if (!samples.empty() && !bindInputs(module, samples)) {
        samples.clear();
        graph.noSamples = "the file's sample inputs have other sizes than those set, and are left out";
        module.origin.remarks.push_back(graph.noSamples);
    }
    return {};
}

}  // namespace

Result<ModelInfo> Session::open(const std::string& path, const Progress& progress) {
    return open(path, OpenSettings{}, progress);
}

Result<ModelInfo> Session::open(const std::string& path, const OpenSettings& settings, const Progress& progress) {
    auto opened = guarded([&]() -> Result<ModelInfo> {
        progress.say(-1, "reading " + path);
        faultPoint("reader", "open");
        std::vector<std::string> remarks;
        loadDefinedOperators(&remarks);
        CT_TRY(OpenedFile file, openChosen(path, settings, progress));
        if (file.graphs.empty())
            return unsupported("the file holds no graph (" + file.description + ")", path,
                               {file.format == FileFormat::CompiledPackage
                                    ? "the Package window (View > Package) and `cutaway-cli package` show it"
                                    : "open a .pt2 file or FX text; `cutaway-cli info` shows what is in it"});
        for (std::string& remark : remarks) file.graphs.front().module->origin.remarks.push_back(std::move(remark));
        auto fresh = std::make_unique<State>();
        fresh->sampleInputs = sampleTensors(file.graphs.front().sampleInputs);
        const bool damaged = fresh->sampleInputs.empty() && !file.graphs.front().sampleInputs.empty();
        CT_TRY_VOID(setSizes(file.graphs.front(), settings.sizes, fresh->sampleInputs));
        fresh->noSamples = damaged ? "sample inputs of the file are left out: not all of them are tensors or numbers"
                                   : file.graphs.front().noSamples;
        fresh->info = describeFile(file);
        fresh->settings = settings;
        fresh->input = std::move(file.graphs.front().module);
        fresh->file = std::move(file);
        m_state = std::move(fresh);
        return m_state->info;
    });
    if (opened || !isReproducible(opened.error())) return opened;
    return withReproducer(opened.error(), [&] {
        Failure failure;
        failure.operation = "open";
        failure.file = path;
        return failure;
    });
}

Result<ModelInfo> inspectFile(const std::string& path, const OpenSettings& settings) {
    return guarded([&]() -> Result<ModelInfo> {
        std::vector<std::string> remarks;
        loadDefinedOperators(&remarks);
        CT_TRY(OpenedFile file, openChosen(path, settings, {}));
        if (!file.graphs.empty())
            for (std::string& remark : remarks) file.graphs.front().module->origin.remarks.push_back(std::move(remark));
        std::vector<Tensor> samples;
        if (!file.graphs.empty()) CT_TRY_VOID(setSizes(file.graphs.front(), settings.sizes, samples));
        return describeFile(file);
    });
}

bool Session::isOpen() const { return m_state->input != nullptr; }
const ModelInfo& Session::model() const { return m_state->info; }

namespace {

/// Adds to the error of a run's failed step how to repeat it, where that is worth it.
void sayHowToRepeat(CompileTrace& trace) {
    if (!trace.failed()) return;
    Step& step = trace.steps.back();
    const Error error{step.error.code, step.info.error, {}, {}};
    if (!isReproducible(error)) return;
    step.info.error = withReproducer(error, [&] { return compileFailure(trace.input, trace.request, &trace); }).text();
}

}  // namespace

Result<RunId> Session::State::finish(Result<CompileTrace> compiled) {
    CT_TRY(CompileTrace trace, std::move(compiled));
    sayHowToRepeat(trace);
    return add(std::move(trace));
}

Result<RunId> Session::compile(const CompileRequest& request, const CompileHooks& hooks, const Progress& progress) {
    return compileWatched(request, hooks, {}, progress);
}

Result<RunId> Session::compileWatched(const CompileRequest& request, const CompileHooks& hooks,
                                      const std::function<void(const StepInfo&)>& ended, const Progress& progress) {
    auto compiled = guarded([&]() -> Result<RunId> {
        if (!isOpen()) return Error{ErrorCode::NotFound, "no model is open", {}, {"open a .pt2 file or FX text first"}};
        CompileHooks lent = hooks;
        CompileRequest whole = request;
        CT_TRY_VOID(lendHooks(*m_state->input, whole, lent));
        CT_TRY(CompileTrace trace, ended ? runPipelineWatched(m_state->input, whole, lent, ended, progress)
                                         : runPipeline(m_state->input, whole, lent, progress));
        return m_state->finish(std::move(trace));
    });
    if (compiled || !isOpen() || !isReproducible(compiled.error())) return compiled;
    return withReproducer(compiled.error(), [&] { return compileFailure(m_state->input, request, nullptr); });
}

Result<bool> Session::wasCancelled(RunId id) const {
    return guarded([&]() -> Result<bool> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        return found->trace.cancelled;
    });
}

std::vector<RunId> Session::runs() const {
    std::vector<RunId> ids(m_state->runCount());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
}
Result<CompileRequest> Session::requestOf(RunId id) const {
    return guarded([&]() -> Result<CompileRequest> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        return found->trace.request;
    });
}
Result<std::vector<StepInfo>> Session::steps(RunId id) const {
    return guarded([&]() -> Result<std::vector<StepInfo>> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        std::vector<StepInfo> infos;
        for (const Step& step : found->trace.steps) infos.push_back(step.info);
        return infos;
    });
}
Result<std::vector<StageInfo>> Session::stages(RunId id) const {
    return guarded([&]() -> Result<std::vector<StageInfo>> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        return found->trace.stages;
    });
}
Result<std::vector<RewriteInfo>> Session::rewrites(RunId id, int step, const Progress&) {
    return guarded([&]() -> Result<std::vector<RewriteInfo>> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        if (step < 0 || step >= static_cast<int>(found->trace.steps.size()))
            return Error{ErrorCode::NotFound, "no step " + std::to_string(step), {}, {}};
        std::vector<RewriteInfo> rewrites = found->trace.steps[static_cast<size_t>(step)].rewrites;
        for (RewriteInfo& rewrite : rewrites) rewrite.key = keyIn(rewrite.body, rewrite.nodeId);
        return rewrites;
    });
}

Result<UnionGraph> Session::diff(const Place& before, const Place& after, const Progress& progress) {
    return guarded([&]() -> Result<UnionGraph> {
        CT_TRY(const Snapshot old, m_state->snapshot(before, progress.cancel.get()));
        CT_TRY(const Snapshot fresh, m_state->snapshot(after, progress.cancel.get()));
        if (m_state->oneLineage(before, after)) return describeUnion(*old, *fresh);
        return describeMatched(*old, *fresh, m_state->common(before, after).get());
    });
}

Result<GraphText> Session::text(const Place& place, bool runnable, const Progress& progress) {
    return guarded([&]() -> Result<GraphText> {
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        PrintOptions options;
        options.runnable = runnable;
        if (runnable) CT_TRY_VOID(checkRunnable(*module));
        PrintedText printed = printText(*module, options);
        std::vector<NodeKey> keys = lineKeys(*module, printed);
        return GraphText{std::move(printed.text), std::move(keys)};
    });
}

Result<NodeDetails> Session::node(const Place& place, NodeKey key, const Progress& progress) {
    return guarded([&]() -> Result<NodeDetails> {
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        const auto [graph, path, inside] = findGraph(*module, key);
        const Node* found = graph ? graph->graph().find(inside) : nullptr;
        if (found == nullptr)
            return Error{
                ErrorCode::NotFound, "the node does not exist at this step", {}, {"its history says where it went"}};
        NodeDetails details = describeDetails(*graph, *found);
        details.constant = constantInfo(*graph, *found);
        details.kernel = describeKernel(*graph, *found);
        if (!path.empty()) {
            putInto(graphOf(key), details.node);
            if (details.kernel)
                for (NodeKey& other : details.kernel->nodes) other = nodeKey(graphOf(key), nodeOf(other));
            details.node.module = path + (details.node.module.empty() ? "" : "." + details.node.module);
        }
        if (auto run = std::as_const(*m_state).run(place.run)) details.history = historyOf((*run)->trace, key);
        return details;
    });
}

Result<ValueSummary> Session::values(const Place& place, NodeKey key, const Progress& progress) {
    return guarded([&]() -> Result<ValueSummary> {
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        const auto [graph, path, inside] = findGraph(*module, key);
        const Node* found = graph ? graph->graph().find(inside) : nullptr;
        if (found == nullptr) return Error{ErrorCode::NotFound, "the node does not exist at this step", {}, {}};
        return constantValues(*graph, *found, progress);
    });
}

Result<ModelInfo> Session::graphInfo(const Place& place) {
    return guarded([&]() -> Result<ModelInfo> {
        CT_TRY(const Snapshot module, m_state->snapshot(place));
        ModelInfo info = describeModel(m_state->info.path, *module);
        info.preservedArguments = preservedArguments(*m_state->input, *module);
        return info;
    });
}

std::vector<PassInfo> passList(const CompileRequest& request) {
    std::vector<PassInfo> list;
    const std::vector<const Stage*> stages = stagesOf(compiler(), &request);
    for (const StagePass& one : pipeline()) {
        const Pass& pass = *one.pass;
        const bool runs = std::find(stages.begin(), stages.end(), one.stage) != stages.end();
        if (runs && pass.releases.hold(request.pytorch) && (!pass.when || pass.when(request)))
            list.push_back(
                {std::string(one.stage->name), std::string(pass.name), std::string(pass.summary), pass.onRequest});
    }
    return list;
}

}  // namespace cutaway
