#include "engine/runtime/checked.h"

#include "engine/interpret/peak.h"
#include "engine/runtime/checked_gradients.h"
#include "engine/runtime/module_io.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

enum class RequestKind : uint8_t { Rows, Value, WideValue, Results, Gradients };

void writeGraph(ByteWriter& out, const ReadyGraph& graph, std::vector<Tensor>& tensors) {
    writeModule(out, *graph.module, tensors);
    out.count(graph.inputs.size());
    for (const Tensor& input : graph.inputs) {
        out.pod(uint8_t{1});
        tensors.push_back(input);
    }
}
ReadyGraph readGraph(ByteReader& in, const std::vector<Tensor>& tensors, size_t& next) {
    ReadyGraph graph{readModule(in, tensors, next), {}};
    in.each([&] {
        static_cast<void>(in.pod<uint8_t>());  // a count is believed only as far as there are bytes
        if (next < tensors.size()) graph.inputs.push_back(tensors[next++]);
        else in.fail();
    });
    return graph;
}

void writeJudge(ByteWriter& out, const JudgeOptions& judge) {
    out.pod(judge.judge);
    out.pod(judge.tolerance.has_value());
    out.pod(judge.tolerance.value_or(0));
    for (const bool flag : {judge.cosineSimilarity, judge.equalNan, judge.exactDtype, judge.ignoreNonFloat,
                            judge.largerMultiplierForSmallTensors, judge.maxMultiplier, judge.iouForBool})
        out.pod(flag);
    out.pod(judge.iouThreshold);
}
JudgeOptions readJudge(ByteReader& in) {
    JudgeOptions judge;
    judge.judge = in.pod<Judge>();
    const bool given = in.pod<bool>();
    const auto tolerance = in.pod<double>();
    if (given) judge.tolerance = tolerance;
    for (bool* flag : {&judge.cosineSimilarity, &judge.equalNan, &judge.exactDtype, &judge.ignoreNonFloat,
                       &judge.largerMultiplierForSmallTensors, &judge.maxMultiplier, &judge.iouForBool})
        *flag = in.pod<bool>();
    judge.iouThreshold = in.pod<double>();
    return judge;
}

/// Names and keys of nodes are not sent: the program that asked has them.
void writeNodeRow(ByteWriter& out, const NodeNumbers& row) {
    out.pod(row.verdict);
    out.text(row.why);
    for (const int64_t count : {row.elements, row.nans, row.infinities, row.newNonFinite, row.different})
        out.pod(count);
    out.dims(row.worst);
    for (const double number : {row.maxAbsolute, row.maxRelative, row.maxUlp, row.cosine, row.worstValue,
                                row.worstReference, row.rmse, row.referenceRmse, row.maxFrom64, row.referenceMaxFrom64})
        out.pod(number);
}
NodeNumbers readNodeRow(ByteReader& in) {
    NodeNumbers row;
    row.verdict = in.pod<NodeVerdict>();
    row.why = in.text();
    for (int64_t* count : {&row.elements, &row.nans, &row.infinities, &row.newNonFinite, &row.different})
        *count = in.pod<int64_t>();
    row.worst = in.dims();
    for (double* number : {&row.maxAbsolute, &row.maxRelative, &row.maxUlp, &row.cosine, &row.worstValue,
                           &row.worstReference, &row.rmse, &row.referenceRmse, &row.maxFrom64, &row.referenceMaxFrom64})
        *number = in.pod<double>();
    return row;
}

/// Bytes of values to hold in memory, so that the whole takes about twice a plain run. The operands of one call,
/// converted to f64, come on top.
double valueBytes(const ReadyGraph& checked, const ReadyGraph& reference, double given) {
    constexpr double kLeast = 32.0 * (1 << 20), kOfPeak = 1.2, kOfGiven = 0.5;
    return std::max(kLeast,
                    kOfPeak * std::max(peakBytes(*checked.module), peakBytes(*reference.module)) + kOfGiven * given);
}

WorkerOptions workerOptions(const CheckedOptions& options) {
    return {0, options.timeoutSeconds, options.memoryBytes, {}};
}

}  // namespace

Result<SideBySideEnd> runChecked(const ReadyGraph& checked, const ReadyGraph& reference,
                                 const std::vector<int>& counterparts, const CheckedOptions& options,
                                 const std::function<void(size_t position, const NodeNumbers&)>& row,
                                 const Progress& progress) {
    ByteWriter out;
    std::vector<Tensor> tensors;
    out.pod(RequestKind::Rows);
    writeJudge(out, options.judge);
    writeGraph(out, checked, tensors);
    writeGraph(out, reference, tensors);
    writePlugins(out, options.plugins, *checked.module);
    out.count(counterparts.size());
    for (const int position : counterparts) out.pod(position);
    const auto given = static_cast<double>(bytesOf(tensors));
    const double values = valueBytes(checked, reference, given);
    out.pod(values);
    CT_TRY_VOID(
        checkMemory("the checked run", {{"inputs and weights", given}, {"values", values}}, ForProcess::NewChild));
    WorkerOptions worker = workerOptions(options);
    worker.told = [&](std::string_view bytes) {
        ByteReader in(bytes);
        const auto position = in.pod<uint64_t>();
        const NodeNumbers numbers = readNodeRow(in);
        if (!in.failed()) row(position, numbers);
    };
    CT_TRY(const Message reply,
           askWorker(WorkerTask::Checked, "the checked graph", out.bytes, tensors, worker, progress));
    ByteReader in(reply.text);
    SideBySideEnd end;
    end.failed = in.text();
    in.each([&] { end.ownDtypes.insert(std::string(in.text())); });
    end.spilled = in.pod<int64_t>();
    in.each([&] { end.remarks.insert(std::string(in.text())); });
    return end;
}

Result<std::vector<Tensor>> readValue(const ReadyGraph& graph, size_t position, bool wide,
                                      const CheckedOptions& options, const Progress& progress) {
    ByteWriter out;
    std::vector<Tensor> tensors;
    out.pod(wide ? RequestKind::WideValue : RequestKind::Value);
    writeGraph(out, graph, tensors);
    writePlugins(out, options.plugins, *graph.module);
    out.pod(static_cast<uint64_t>(position));
    CT_TRY_VOID(checkMemory("the run up to the node",
                            {{"inputs and weights", static_cast<double>(bytesOf(tensors))},
                             {"values", peakBytes(*graph.module) * (wide ? 3 : 1)}},
                            ForProcess::NewChild));
    CT_TRY(Message reply, askWorker(WorkerTask::Checked, "the graph up to the node", out.bytes, tensors,
                                    workerOptions(options), progress));
    return std::move(reply.tensors);
}

Result<BothResults> readResults(const ReadyGraph& graph, const CheckedOptions& options, const Progress& progress) {
    ByteWriter out;
    std::vector<Tensor> tensors;
    out.pod(RequestKind::Results);
    writeGraph(out, graph, tensors);
    CT_TRY_VOID(checkMemory(
        "the reference in f64",
        {{"inputs and weights", static_cast<double>(bytesOf(tensors))}, {"values", peakBytes(*graph.module) * 3}},
        ForProcess::NewChild));
    CT_TRY(Message reply,
           askWorker(WorkerTask::Checked, "the reference", out.bytes, tensors, workerOptions(options), progress));
    BothResults results;
    const auto half = static_cast<std::ptrdiff_t>(reply.tensors.size() / 2);
    results.plain.assign(reply.tensors.begin(), reply.tensors.begin() + half);
    results.wide.assign(reply.tensors.begin() + half, reply.tensors.end());
    return results;
}

Result<GradientCheck> runGradientCheck(const ReadyGraph& joint, const GradientCheckOptions& options,
                                       const Progress& progress) {
    ByteWriter out;
    std::vector<Tensor> tensors;
    out.pod(RequestKind::Gradients);
    writeGraph(out, joint, tensors);
    writeRoles(out, *joint.module);
    out.pod(options.seed);
    out.pod(options.everyCall);
    CT_TRY_VOID(checkMemory(
        "the gradients in f64",
        {{"inputs and weights", static_cast<double>(bytesOf(tensors))}, {"values", peakBytes(*joint.module) * 2}},
        ForProcess::NewChild));
    CT_TRY(const Message reply, askWorker(WorkerTask::Checked, "the joint graph", out.bytes, tensors,
                                          {0, options.timeoutSeconds, options.memoryBytes, {}}, progress));
    ByteReader in(reply.text);
    return readGradientCheck(in);
}

namespace {

Result<Message> answerGradients(ByteReader& in, const ReadyGraph& joint, const SideBySideOptions& options) {
    readRoles(in, *joint.module);
    GradientCheckPlan plan;
    plan.seed = in.pod<uint64_t>();
    plan.everyCall = in.pod<bool>();
    if (in.failed()) return invalidInput("the graph that was sent is damaged");
    plan.begin = [&](const Node& node) { options.begin(node, 0); };
    CT_TRY(const GradientCheck check, checkGradients(joint, plan));
    ByteWriter out;
    writeGradientCheck(out, check);
    return Message{std::move(out.bytes), {}};
}

Result<Message> answerRows(ByteReader& in, const std::vector<Tensor>& tensors, SideBySideOptions& options) {
    size_t next = 0;
    options.judge = readJudge(in);
    const ReadyGraph checked = readGraph(in, tensors, next), reference = readGraph(in, tensors, next);
    const CheckedPlugins plugins = readPlugins(in, *checked.module);
    if (plugins.judge) options.ask = askedBy(PluginJudge(*plugins.judge));
    CallsOfPlugins calls(plugins.libraries);
    options.compute = calls.compute();
    std::vector<int> counterparts;
    in.each([&] { counterparts.push_back(in.pod<int>()); });
    options.valueBytes = in.pod<double>();
    if (in.failed()) return invalidInput("the graph that was sent is damaged");
    CT_TRY(const SideBySideEnd end,
           runSideBySide(checked, reference, counterparts, options, [](size_t position, const NodeNumbers& row) {
               ByteWriter out;
               out.pod(static_cast<uint64_t>(position));
               writeNodeRow(out, row);
               tell(out.bytes);
           }));
    ByteWriter out;
    out.text(end.failed);
    out.count(end.ownDtypes.size());
    for (const std::string& op : end.ownDtypes) out.text(op);
    out.pod(end.spilled);
    out.count(calls.remarks().size());
    for (const std::string& remark : calls.remarks()) out.text(remark);
    return Message{std::move(out.bytes), {}};
}

}  // namespace

Result<Message> answerChecked(const Message& request, StatusPage& board) {
    ByteReader in(request.text);
    SideBySideOptions options;
    options.begin = [&](const Node& node, double fraction) {
        board.at(node.name());
        board.done(fraction);
    };
    const auto wish = in.pod<RequestKind>();
    if (wish == RequestKind::Rows) return answerRows(in, request.tensors, options);
    size_t next = 0;
    const ReadyGraph graph = readGraph(in, request.tensors, next);
    if (wish == RequestKind::Gradients) return answerGradients(in, graph, options);
    if (wish == RequestKind::Results && !in.failed()) {
        CT_TRY(TensorList results, resultsOf(graph, false, options));
        CT_TRY(const TensorList wide, resultsOf(graph, true, options));
        results.insert(results.end(), wide.begin(), wide.end());
        return Message{{}, std::move(results)};
    }
    const CheckedPlugins plugins = readPlugins(in, *graph.module);
    CallsOfPlugins calls(plugins.libraries);
    options.compute = calls.compute();
    const auto position = in.pod<uint64_t>();
    if (in.failed()) return invalidInput("the graph that was sent is damaged");
    CT_TRY(TensorList value, valueOfNode(graph, position, wish == RequestKind::WideValue, options));
    return Message{{}, std::move(value)};
}

}  // namespace cutaway
