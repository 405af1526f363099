// Checked runs: each value of a graph beside that of the graph it came from, and of that one in f64.
#include <algorithm>
#include <cmath>

#include "cutaway/backends.h"
#include "cutaway/guarded.h"
#include "cutaway/numerics.h"
#include "engine/numerics/element_reader.h"
#include "engine/plugins/plugin_libraries.h"
#include "engine/runtime/checked.h"
#include "engine/session/arguments.h"
#include "engine/session/checked_graphs.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/execution.h"
#include "engine/session/run_inputs.h"
#include "engine/session/run_notes.h"

namespace cutaway {
namespace {

/// `libraries`: of plugins, which compute calls of the graph that is run.
Result<CheckedOptions> workerOptions(const CheckedRunOptions& options,
                                     const std::map<NodeId, PluginLibrary>& libraries = {}) {
    CheckedOptions out{options.judge, {{}, libraries}, options.timeoutSeconds, options.memoryBytes};
    if (options.judge.judge == Judge::Plugin) {
        CT_TRY(const PluginItemRef judge, findItem("judge", options.judge.plugin));
        out.plugins.judge = describedItem(judge);
    }
    return out;
}

std::string comparedTypeText(const ValueType& type) {
    const TupleType* items = type.tuple();
    if (items == nullptr) return type.text();
    std::string text;
    for (const ValueType& item : *items) text += (text.empty() ? "" : ", ") + item.text();
    return text;
}

/// Where somebody should look first: a NaN, or what the reference has finite; infinities alone may be meant, as in
/// masks.
bool notFinite(const NodeNumbers& row) { return row.nans > 0 || row.newNonFinite > 0; }

std::string countsOf(const CheckedRun& run) {
    std::map<NodeVerdict, int> counts;
    for (const NodeNumbers& row : run.nodes) ++counts[row.verdict];
    std::string text;
    for (const auto& [verdict, count] : counts)
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + wordOf(verdict);
    return text;
}

void summarize(CheckedRun& run) {
    for (size_t i = 0; i < run.nodes.size(); ++i) {
        if (!run.firstNonFinite && notFinite(run.nodes[i])) run.firstNonFinite = i;
        if (!run.firstDivergent && diverges(run.nodes[i].verdict)) run.firstDivergent = i;
    }
    if (run.firstDivergent) {
        const NodeNumbers& row = run.nodes[*run.firstDivergent];
        run.summary = "the first value that diverges is '" + row.name + "'" +
                      (row.op.empty() ? "" : " (" + row.op + ")") + ": " + row.why;
    } else {
        run.summary = run.failed.empty() ? "no value diverges: " + countsOf(run) : "it ended early: " + run.failed;
    }
}

void addRemarks(const SideBySideEnd& end, CheckedRun& run) {
    std::string ops;
    for (const std::string& op : end.ownDtypes) ops += (ops.empty() ? "" : ", ") + op;
    if (!ops.empty()) run.remarks.push_back("computed in their own dtypes in the f64 run, too: " + ops);
    const auto alone = std::count_if(run.nodes.begin(), run.nodes.end(), [](const NodeNumbers& row) {
        return row.verdict == NodeVerdict::Unmatched && row.elements > 0;
    });
    if (alone > 0)
        run.remarks.push_back(std::to_string(alone) + (alone == 1 ? " value has" : " values have") +
                              " no counterpart in the reference; only what they lead to is judged");
    run.remarks.insert(run.remarks.end(), end.remarks.begin(), end.remarks.end());
}

Result<CheckedRun> interpreted(const CheckedGraph& checked, const Session::State& state,
                               const CheckedRunOptions& options, const std::function<void(const NodeNumbers&)>& row,
                               const Progress& progress) {
    CheckedRun run;
    run.place = checked.place;
    run.reference = checked.referencePlace;
    CT_TRY(const CheckedOptions how, workerOptions(options, checked.libraries));
    CT_TRY(const ReadyPair pair, readyPair(checked, state, options.inputsFile, progress));
    std::vector<const Node*> nodes, others;
    for (const Node& node : pair.graph.module->graph().nodes()) nodes.push_back(&node);
    for (const Node& node : pair.reference.module->graph().nodes()) others.push_back(&node);
    const auto end = runChecked(
        pair.graph, pair.reference, pair.counterparts, how,
        [&](size_t position, const NodeNumbers& measured) {
            if (position >= nodes.size()) return;
            NodeNumbers found = measured;
            const Node& node = *nodes[position];
            // ATen calls that a Python call was expanded into for the run are not nodes of the opened graph.
            if (checked.graph->graph().find(node.id())) found.node = nodeKey(0, node.id());
            found.name = node.name();
            found.op = node.isCall() ? node.op().name() : "";
            found.type = comparedTypeText(node.type());
            if (const int at = pair.counterparts[position]; at >= 0)
                found.reference = others[static_cast<size_t>(at)]->name();
            run.nodes.push_back(found);
            if (row) row(found);
        },
        progress);
    if (end) {
        run.failed = end->failed;
        addRemarks(*end, run);
    } else if (end.error().code == ErrorCode::Cancelled) {
        return end.error();
    } else {
        run.failed = end.error().text();
        if (run.nodes.empty()) return end.error();
    }
    return run;
}

/// Results of compiled code beside those of the graph as it was opened.
Result<CheckedRun> compiled(const Session::State& state, Session::State::Run& found, const Place& place,
                            const CheckedRunOptions& options, const std::function<void(const NodeNumbers&)>& row,
                            const Progress& progress) {
    const CompileTrace& trace = found.trace;
    if (trace.isSplit())
        return unsupported("side-by-side values are not available for compiled training", {},
                           {"use: cutaway-cli run MODEL --mode training --expect FILE"});
    CT_TRY_VOID(checkBackend(options.backend, trace.request.target));
    CheckedRun run;
    run.place = place;
    run.reference = {place.run, -1, -1};
    run.remarks.push_back(
        "compiled code is compared at its results: the values between them are fused into kernels and never stored");
    Snapshot opened = trace.input;
    for (const Step& step : trace.steps) {
        if (hasValues(*opened)) break;
        opened = step.after;
        run.reference.step = step.info.index;
    }
    CT_TRY(const ReadyGraph reference, readyGraph(opened, state, options.inputsFile, progress));
    CT_TRY(const CheckedOptions how, workerOptions(options));
    const AskJudge ask = how.plugins.judge ? askedBy(PluginJudge(*how.plugins.judge)) : AskJudge();
    CT_TRY(const BothResults expected, readResults(reference, how, progress));
    CT_TRY(const CalledGraph called, calledFor(trace.result(), state, options.inputsFile));
    RunOptions running;
    running.backend = options.backend;
    running.timeoutSeconds = options.timeoutSeconds;
    const std::lock_guard turn(found.turn);
    CT_TRY(const Execution ran, runCompiled(found, "", called.graph == trace.result() ? nullptr : called.graph,
                                            called.user, running, progress));
    JudgeOptions judge = options.judge;
    if (ran.tf32) {
        // Own counts in errors of the reference in f32, which rounds 13 bits further down.
        const bool own = judge.judge == Judge::F64Error;
        judge.tolerance =
            own ? judge.tolerance.value_or(4) * 8192 : std::max(judge.tolerance.value_or(0), kTf32Tolerance);
        run.remarks.push_back(kTf32Note);
    }
    for (size_t i = 0; i < std::min(ran.outputs.size(), expected.plain.size()); ++i) {
        if (!ran.outputs[i].defined() || !expected.plain[i].defined()) continue;
        NodeNumbers numbers;
        numbers.name = outputName(*trace.result(), i);
        const auto values = trace.result()->graph().outputs();
        if (const Node* node = values[i].node()) {
            numbers.node = nodeKey(0, node->id());
            numbers.op = node->isCall() ? node->op().name() : "";
            numbers.type = node->type().text();
        }
        numbers.reference = outputName(*opened, i);
        const Tensor wide = expected.wide[i].defined() && expected.wide[i].sizes() == ran.outputs[i].sizes()
                                ? expected.wide[i]
                                : Tensor();
        const Tensor plain = expected.plain[i].sizes() == ran.outputs[i].sizes() ? expected.plain[i] : Tensor();
        CT_TRY_VOID(measureAndAsk(ran.outputs[i], plain, wide, judge, ask, numbers));
        run.nodes.push_back(numbers);
        if (row) row(numbers);
    }
    return run;
}

/// One side's tensor of a compared value; kept in memory, since the window asks for several slices of it.
class TensorValue : public NodeValue {
  public:
    explicit TensorValue(Tensor tensor) : m_tensor(tensor.contiguous()) {}
    const std::vector<int64_t>& sizes() const override { return m_tensor.sizes(); }
    std::string type() const override {
        return TensorType::contiguous(m_tensor.dtype(), toSymDims(m_tensor.sizes())).text();
    }
    ValueSlice slice(const std::vector<int64_t>& leading, int64_t maxRows, int64_t maxColumns) const override;

  private:
    Tensor m_tensor;
};

/// The more conspicuous of two numbers, to stand for both in a coarser grid: NaN, else the one of larger magnitude.
double louder(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    return std::abs(b) > std::abs(a) ? b : a;
}

ValueSlice TensorValue::slice(const std::vector<int64_t>& leading, int64_t maxRows, int64_t maxColumns) const {
    ValueSlice out;
    const Dims& sizes = m_tensor.sizes();
    if (m_tensor.numel() == 0) return out;
    const int64_t columns = sizes.empty() ? 1 : sizes.back();
    const int64_t rows = sizes.size() < 2 ? 1 : sizes[sizes.size() - 2];
    int64_t offset = m_tensor.offset();
    for (size_t d = 0; d + 2 < sizes.size(); ++d)
        offset += std::clamp<int64_t>(d < leading.size() ? leading[d] : 0, 0, sizes[d] - 1) * m_tensor.strides()[d];
    const Tensor plane(m_tensor.storage(), m_tensor.dtype(), {rows, columns}, {columns, 1}, offset);
    out.everyRow = (rows + maxRows - 1) / maxRows;
    out.everyColumn = (columns + maxColumns - 1) / maxColumns;
    out.rows = (rows + out.everyRow - 1) / out.everyRow;
    out.columns = (columns + out.everyColumn - 1) / out.everyColumn;
    out.numbers.assign(static_cast<size_t>(out.rows * out.columns), 0);
    bool any = false;
    const int wide = ElementReader::width(m_tensor.dtype());
    forEachPiece(
        [&](int64_t first, int64_t count, const double* x) {
            for (int64_t i = 0; i < count; i += wide) {
                // Of complex numbers the magnitude.
                const double value = wide == 2 ? std::hypot(x[i], x[i + 1]) : x[i];
                const int64_t at = (first + i) / wide, row = at / columns, column = at % columns;
                double& cell =
                    out.numbers[static_cast<size_t>(row / out.everyRow * out.columns + column / out.everyColumn)];
                const bool begins = row % out.everyRow == 0 && column % out.everyColumn == 0;
                cell = begins ? value : louder(cell, value);
                out.nans += std::isnan(value);
                out.infinities += std::isinf(value);
                if (!std::isfinite(value)) continue;
                out.least = any ? std::min(out.least, value) : value;
                out.most = any ? std::max(out.most, value) : value;
                any = true;
            }
        },
        plane);
    return out;
}

/// Position of a node in the order of a graph; -1 if it is not there.
int positionOf(const Module& module, NodeId id) {
    int at = 0;
    for (const Node& node : module.graph().nodes()) {
        if (node.id() == id) return at;
        ++at;
    }
    return -1;
}

Result<Tensor> oneTensor(Result<std::vector<Tensor>> values) {
    if (!values) return values.error();
    if (values->size() == 1 && (*values)[0].defined()) return (*values)[0];
    return unsupported("the value of this node is not one tensor", {}, {"choose one of its items"});
}

Tensor differenceOf(const Tensor& a, const Tensor& b) {
    Tensor out = Tensor::empty(isComplex(a.dtype()) ? DType::C128 : DType::F64, a.sizes());
    auto* to = static_cast<double*>(out.data());
    forEachPiece(
        [&](int64_t first, int64_t count, const double* x, const double* y) {
            for (int64_t i = 0; i < count; ++i) to[first + i] = x[i] == y[i] ? 0 : x[i] - y[i];
        },
        a, b);
    return out;
}

}  // namespace

Result<CheckedRun> checkedRun(Session& session, const Place& place, const CheckedRunOptions& options,
                              const std::function<void(const NodeNumbers&)>& row, const Progress& progress) {
    return guarded([&]() -> Result<CheckedRun> {
        Session::State& state = session.state();
        CT_TRY(Session::State::Run * found, state.run(place.run));
        CT_TRY(const RunInputs chosen,
               chooseInputs(*state.input, state.sampleInputs, options.inputsFile, state.noSamples));
        CT_TRY_VOID(state.snapshot(place, progress.cancel.get()));
        CheckedRun run;
        if (options.backend != Backend::Reference) {
            CT_TRY(run, compiled(state, *found, place, options, row, progress));
        } else {
            CheckedGraphs graphs(state, found->trace, place.run);
            CT_TRY(const CheckedGraph checked, graphs.at(place, progress.cancel.get()));
            CT_TRY(run, interpreted(checked, state, options, row, progress));
        }
        run.inputsFrom = chosen.from;
        summarize(run);
        return run;
    });
}

Result<FirstDivergence> firstDivergence(Session& session, RunId id, const CheckedRunOptions& options,
                                        const std::function<void(const StepInfo&, const CheckedRun&)>& looked,
                                        const Progress& progress) {
    return guarded([&]() -> Result<FirstDivergence> {
        Session::State& state = session.state();
        CT_TRY(Session::State::Run * found, state.run(id));
        const CompileTrace& trace = found->trace;
        FirstDivergence out;
        CheckedGraphs graphs(state, trace, id);
        while (true) {
            CT_TRY(const bool more, graphs.next());
            if (!more) break;
            const StepInfo& step = trace.steps[static_cast<size_t>(graphs.current().place.step)].info;
            progress.say(static_cast<double>(step.index) / static_cast<double>(trace.steps.size()),
                         "checking " + step.name);
            CT_TRY(out.checked, interpreted(graphs.current(), state, options, {}, {progress.cancel, {}}));
            summarize(out.checked);
            ++out.steps;
            if (looked) looked(step, out.checked);
            if (!out.checked.firstDivergent) continue;
            out.found = true;
            out.step = step;
            out.summary = "step " + step.name + " is the first after which a value diverges; " + out.checked.summary;
            return out;
        }
        out.summary =
            "no value diverges after any of the " + std::to_string(out.steps) + " steps that changed the graph";
        return out;
    });
}

Result<std::shared_ptr<const NodeValue>> valueAt(Session& session, const Place& place, NodeKey node, ValueSide side,
                                                 const CheckedRunOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<std::shared_ptr<const NodeValue>> {
        Session::State& state = session.state();
        CT_TRY(Session::State::Run * found, state.run(place.run));
        if (graphOf(node) != 0)
            return unsupported("a value inside a loop body has one value per iteration", {},
                               {"look at the call's own"});
        CheckedGraphs graphs(state, found->trace, place.run);
        CT_TRY(const CheckedGraph checked, graphs.at(place, progress.cancel.get()));
        CT_TRY(const ReadyPair pair, readyPair(checked, state, options.inputsFile, progress));
        const int at = positionOf(*pair.graph.module, nodeOf(node));
        if (at < 0) return Error{ErrorCode::NotFound, "the node does not exist at this step", {}, {}};
        const int other = pair.counterparts[static_cast<size_t>(at)];
        if (side != ValueSide::Checked && other < 0)
            return Error{ErrorCode::NotFound, "the reference computes no such value", {}, {"look at the value itself"}};
        const auto read = [&](const ReadyGraph& graph, int position, bool wide) -> Result<Tensor> {
            const bool own = graph.module == pair.graph.module;
            CT_TRY(const CheckedOptions how,
                   workerOptions(options, own ? checked.libraries : std::map<NodeId, PluginLibrary>()));
            return oneTensor(readValue(graph, static_cast<size_t>(position), wide, how, progress));
        };
        Tensor value;
        if (side == ValueSide::Checked || side == ValueSide::Difference) {
            CT_TRY(value, read(pair.graph, at, false));
        }
        if (side == ValueSide::Reference) {
            CT_TRY(value, read(pair.reference, other, false));
        }
        if (side == ValueSide::Reference64) {
            CT_TRY(value, read(pair.reference, other, true));
        }
        if (side == ValueSide::Difference) {
            CT_TRY(const Tensor expected, read(pair.reference, other, false));
            if (expected.sizes() != value.sizes() || isComplex(expected.dtype()) != isComplex(value.dtype()))
                return unsupported("the two values have different shapes", {}, {});
            value = differenceOf(value, expected);
        }
        return std::shared_ptr<const NodeValue>(std::make_shared<TensorValue>(value));
    });
}

}  // namespace cutaway
