#include "app/cli/json.h"

#include <cmath>

namespace cutaway::cli {
namespace {

std::string_view stateName(StepState state) {
    switch (state) {
        case StepState::Unchanged: return "unchanged";
        case StepState::Changed: return "changed";
        case StepState::Failed: return "failed";
        case StepState::Disabled: return "disabled";
    }
    return "";
}

}  // namespace

Json realJson(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json toJson(const ModelInfo& model) {
    Json graphs = Json::array();
    for (const GraphSummary& graph : model.graphs) {
        Json ops = Json::array();
        for (const OpSummary& op : graph.ops) {
            Json row{{"op", op.op}, {"count", op.count}};
            if (!op.problem.empty()) row["problem"] = op.problem;
            ops.push_back(std::move(row));
        }
        graphs.push_back({{"name", graph.name},
                          {"nodes", graph.nodes},
                          {"inputs", graph.inputs},
                          {"outputs", graph.outputs},
                          {"ops", ops}});
    }
    return {{"path", model.path},
            {"name", model.name},
            {"format", model.format},
            {"pytorch", model.torch},
            {"graphs", graphs},
            {"parameters", model.parameters},
            {"buffers", model.buffers},
            {"constants", model.constants},
            {"parameter_elements", model.parameterElements},
            {"bytes", model.bytes},
            {"inputs", model.inputs},
            {"outputs", model.outputs},
            {"symbols", model.symbols},
            {"guards", model.guards},
            {"tensors", model.tensors},
            {"contents", model.contents},
            {"remarks", model.remarks}};
}
Json toJson(const StepInfo& step) {
    return {{"index", step.index + 1},
            {"key", step.key()},
            {"track", step.graphName},
            {"stage", step.stage},
            {"name", step.name},
            {"state", stateName(step.state)},
            {"added", step.added},
            {"removed", step.removed},
            {"edited", step.edited},
            {"rewrites", step.rewrites},
            {"nodes_before", step.nodesBefore},
            {"nodes_after", step.nodesAfter},
            {"milliseconds", step.milliseconds},
            {"pass_milliseconds", step.passMilliseconds},
            {"constant_bytes_before", step.constantBytesBefore},
            {"constant_bytes_after", step.constantBytesAfter},
            {"error", step.error}};
}
Json toJson(const RewriteInfo& rewrite) {
    return {{"index", rewrite.index + 1}, {"rule", rewrite.rule}, {"node", rewrite.node}, {"why", rewrite.why}};
}
Json toJson(const PartitionChoice& choice) {
    Json report{{"budget", choice.budget}, {"attempt", choice.attempt}};
    addSaved(report, choice);
    Json reasons = Json::object();
    for (const SavedTensor& value : choice.saved) reasons[value.name] = value.why;
    report["why"] = std::move(reasons);
    report["recomputed"] = choice.recomputed.size();
    report["recomputed_runtime"] = choice.recomputedRuntime;
    report["milliseconds"] = choice.milliseconds;
    return report;
}
void addSaved(Json& row, const PartitionChoice& choice) {
    Json saved = Json::array();
    for (const SavedTensor& value : choice.saved)
        saved.push_back(
            Json::array({value.name, value.sizes, "torch." + value.dtype, value.bytes,
                         value.op == "placeholder" || value.op == "get_attr" ? value.op : "call_function"}));
    row["saved"] = std::move(saved);
    row["saved_bytes"] = choice.savedBytes;
    row["saved_activation_bytes"] = choice.activationBytes;
}
Json toJson(const StageInfo& stage) {
    // The two graphs that a split makes have rows of their own, with stage names that say which of them it is.
    const bool half = stage.stage == "partition" && (stage.graphName == "forward" || stage.graphName == "backward");
    return {{"track", stage.graphName},
            {"stage", half ? (stage.graphName == "forward" ? "partition_fw" : "partition_bw") : stage.stage},
            {"before", stage.before},
            {"after", stage.after},
            {"seconds", stage.seconds}};
}
namespace {
Json jsonOf(const std::vector<OutputReport>& reports) {
    Json outputs = Json::array();
    for (const OutputReport& output : reports) {
        Json row{{"name", output.name},
                 {"type", output.type},
                 {"min", realJson(output.minimum)},
                 {"max", realJson(output.maximum)},
                 {"mean", realJson(output.mean)},
                 {"non_finite", output.nonFinite}};
        if (output.compared) {
            row["within"] = output.within;
            row["max_abs_error"] = realJson(output.maxAbsoluteError);
            row["max_expected"] = realJson(output.maxExpected);
            if (output.worst)
                row["worst"] = {{"index", output.worst->index},
                                {"expected", output.worst->expected},
                                {"actual", output.worst->actual}};
        }
        if (!output.problem.empty()) row["problem"] = output.problem;
        if (!output.remark.empty()) row["remark"] = output.remark;
        outputs.push_back(std::move(row));
    }
    return outputs;
}
}  // namespace

void addCost(Json& row, const RunCost& cost) {
    row["peak_bytes"] = cost.peakBytes;
    row["own_peak_bytes"] = cost.programPeakBytes;
    row["weights_bytes"] = cost.weightsBytes;
    row["arena_bytes"] = cost.arenaBytes;
    row["load_ms"] = cost.loadMilliseconds;
    row["start_ms"] = cost.startMilliseconds;
}
void addCostShape(Json& shape) {
    shape["peak_bytes?"] = "integer: the most memory that the process which ran it has held; of --backend cpu";
    shape["own_peak_bytes?"] = "integer: the same of cutaway-cli";
    shape["weights_bytes?"] = "integer: of them weights and constants, each memory once";
    shape["arena_bytes?"] = "integer: of them values and scratch memory of a run";
    shape["load_ms?"] = "number: until a new process had code and weights; 0 if one had them already";
    shape["start_ms?"] = "number: from the request to the results, less load_ms and the runs themselves";
}
Json toJson(const RunReport& report) {
    Json out{{"inputs", report.inputsFrom},      {"expected", report.expectedFrom},
             {"repeats", report.repeats},        {"median_ms", report.medianMilliseconds},
             {"min_ms", report.minMilliseconds}, {"compared", report.compared},
             {"matches", report.matches},        {"outputs", jsonOf(report.outputs)}};
    if (!report.written.empty()) out["written"] = jsonOf(report.written);
    if (report.cost) addCost(out, *report.cost);
    if (!report.refused.empty()) out["refused"] = report.refused;
    if (!report.notes.empty()) out["notes"] = report.notes;
    if (const auto& training = report.training) {
        out["loss"] = realJson(training->loss);
        out["loss_from"] = training->lossFrom;
        out["gradients"] = jsonOf(training->gradients);
        out["forward_ms"] = training->forwardMilliseconds;
        out["backward_ms"] = training->backwardMilliseconds;
        out["saved_activation_bytes"] = training->savedBytes;
        out["estimated_saved_activation_bytes"] = training->estimatedSavedBytes;
        out["held_bytes"] = training->heldBytes;
    }
    return out;
}
Json shapeOfModel() {
    const Json op{
        {"op", "string: name"}, {"count", "integer: calls"}, {"problem?", "string: why it cannot be run everywhere"}};
    const Json graph{{"name", "string: main first, then subgraphs"},
                     {"nodes", "integer: of the graph"},
                     {"inputs", "integer: of the graph"},
                     {"outputs", "integer: of the graph"},
                     {"ops", Json::array({op})}};
    return {{"path", "string: as given"},
            {"name", "string: of the model"},
            {"format", "string: what kind of file it is"},
            {"pytorch", "string: the version of PyTorch that wrote it; empty where it does not say"},
            {"graphs", Json::array({graph})},
            {"parameters", "integer: tensors"},
            {"buffers", "integer: tensors"},
            {"constants", "integer: tensors"},
            {"parameter_elements", "integer: of all parameters"},
            {"bytes", "integer: of all tensors, ties counted once"},
            {"inputs", Json::array({"string: name and type"})},
            {"outputs", Json::array({"string: name and type"})},
            {"symbols", Json::array({"string: a size symbol, its range and an example"})},
            {"guards", Json::array({"string: what else must hold of sizes, and the first call that needs it"})},
            {"tensors", Json::array({"string: name and type, of files that are tensors only"})},
            {"contents", Json::array({"string: what the file holds beside its graphs"})},
            {"remarks", Json::array({"string: what was assumed while reading"})}};
}
Json shapeOfStep() {
    return {{"index", "integer: counted from 1"},
            {"key", "string: TRACK/STAGE/PASS#K, the same in every process; --step takes it"},
            {"track", "string: main, or joint where the graph is trained"},
            {"stage", "string: name"},
            {"name", "string: of the pass; --step takes it, too, and the index"},
            {"state", "string: unchanged, changed, failed or disabled"},
            {"added", "integer: nodes"},
            {"removed", "integer: nodes"},
            {"edited", "integer: nodes"},
            {"rewrites", "integer: single rewrites"},
            {"nodes_before", "integer: of the graph"},
            {"nodes_after", "integer: of the graph"},
            {"milliseconds", "number: with copying and checking the graph"},
            {"pass_milliseconds", "number: the pass alone"},
            {"constant_bytes_before", "integer: of weights, in steps that freeze, else 0"},
            {"constant_bytes_after", "integer: the same after the step"},
            {"error", "string: why it failed, else empty"}};
}
Json shapeOfRewrite() {
    return {{"index", "integer: in its step, counted from 1"},
            {"rule", "string: name"},
            {"node", "string: where it started"},
            {"why", "string: a sentence"}};
}
namespace {
Json shapeOfSaved() {
    return Json::array({Json::array({"string: name", Json::array({"string: size"}), "string: dtype, as torch.float32",
                                     "integer: bytes", "string: placeholder, get_attr or call_function"})});
}
}  // namespace

Json shapeOfStage() {
    const Json counts{
        {"*", "integer: calls of the op of that name; placeholder, get_attr and output are counted, too"}};
    return {{"track", "string: as of a step"},
            {"stage", "string: name; partition_fw and partition_bw: the graphs that the partition makes"},
            {"before", counts},
            {"after", counts},
            {"seconds", "number: of all its passes"},
            {"saved?", shapeOfSaved()},
            {"saved_bytes?", "integer: of all saved values, of partition_fw"},
            {"saved_activation_bytes?", "integer: of those that are not inputs"}};
}
Json shapeOfPartition() {
    return {{"budget", "number: from 0 to 1"},
            {"attempt", "string: which of the attempts at a partition this is"},
            {"saved", shapeOfSaved()},
            {"saved_bytes", "integer: of all saved values"},
            {"saved_activation_bytes", "integer: of those that are not inputs"},
            {"why", {{"*", "string: why the value of that name is saved"}}},
            {"recomputed", "integer: nodes that are computed on both sides"},
            {"recomputed_runtime", "number: of what the budget computes again, as the estimator counts"},
            {"milliseconds", "number: that choosing took"}};
}
Json shapeOfRun() {
    const Json worst{{"index", Json::array({"integer: of the element, a number for each dim"})},
                     {"expected", "string: as many digits as tell neighbours apart"},
                     {"actual", "string: likewise"}};
    const Json output{{"name", "string: of the output"},
                      {"type", "string: dtype and sizes"},
                      {"min", "real: of the finite elements"},
                      {"max", "real: of the finite elements"},
                      {"mean", "real: of the finite elements"},
                      {"non_finite", "integer: elements that are NaN or infinite"},
                      {"within?", "boolean: close enough to what is expected; with --expect"},
                      {"max_abs_error?", "real: with --expect"},
                      {"max_expected?", "real: with --expect"},
                      {"worst?", worst},
                      {"problem?", "string: why it does not match"},
                      {"remark?", "string: what else explains a difference, such as ties between equal keys"}};
    Json shape{{"inputs", "string: where they come from"},
               {"expected", "string: likewise; empty without --expect"},
               {"repeats", "integer: timed runs"},
               {"median_ms", "number: of the timed runs"},
               {"min_ms", "number: of the timed runs"},
               {"compared", "boolean: whether anything was expected"},
               {"matches", "boolean: false if an output differs"},
               {"outputs", Json::array({output})},
               {"written?", Json::array({output})},
               {"refused?", Json::array({"string: a call that its library did not take after all, and why"})},
               {"notes?", Json::array({"string: what the run takes for granted, or what may be why results differ"})},
               {"loss?", "real: of a training run, as all that follows"},
               {"loss_from?", "string: what it is made of"},
               {"gradients?", Json::array({output})},
               {"forward_ms?", "number: median"},
               {"backward_ms?", "number: median"},
               {"saved_activation_bytes?", "integer: measured; of saved values that are not inputs"},
               {"estimated_saved_activation_bytes?", "integer: the same as the types say"},
               {"held_bytes?", "integer: of all saved values, each memory once"}};
    addCostShape(shape);
    return shape;
}
std::string dump(const Json& json) {
    // Names may hold bytes that are not UTF-8; JSON cannot.
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cutaway::cli
