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

Json number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

}  // namespace

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
            {"graphs", graphs},
            {"parameters", model.parameters},
            {"buffers", model.buffers},
            {"constants", model.constants},
            {"parameter_elements", model.parameterElements},
            {"bytes", model.bytes},
            {"inputs", model.inputs},
            {"outputs", model.outputs},
            {"symbols", model.symbols},
            {"tensors", model.tensors},
            {"contents", model.contents},
            {"remarks", model.remarks}};
}
Json toJson(const StepInfo& step) {
    return {{"index", step.index + 1},
            {"key", step.key()},
            {"track", step.track},
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
            {"error", step.error}};
}
Json toJson(const RewriteInfo& rewrite) {
    return {{"index", rewrite.index + 1}, {"rule", rewrite.rule}, {"node", rewrite.node}, {"why", rewrite.why}};
}
Json toJson(const StageInfo& stage) {
    return {{"track", stage.track},
            {"stage", stage.stage},
            {"before", stage.before},
            {"after", stage.after},
            {"seconds", stage.seconds}};
}
Json toJson(const KernelInfo& kernel) {
    return {{"name", kernel.name},
            {"kind", kernel.kind},
            {"nodes", kernel.nodes.size()},
            {"bytes_read", kernel.bytesRead},
            {"bytes_written", kernel.bytesWritten},
            {"flops", kernel.flops},
            {"microseconds", kernel.microseconds},
            {"reasons", kernel.reasons}};
}
Json toJson(const BuildInfo& build) {
    Json kernels = Json::array();
    for (const KernelInfo& kernel : build.kernels) kernels.push_back(toJson(kernel));
    return {{"compile_seconds", build.compileSeconds}, {"kernels", kernels}};
}
Json toJson(const RunReport& report) {
    Json outputs = Json::array();
    for (const OutputReport& output : report.outputs) {
        Json row{{"name", output.name},           {"type", output.type},         {"min", number(output.minimum)},
                 {"max", number(output.maximum)}, {"mean", number(output.mean)}, {"non_finite", output.nonFinite}};
        if (output.compared) {
            row["within"] = output.within;
            row["max_abs_error"] = number(output.maxAbsoluteError);
            row["max_expected"] = number(output.maxExpected);
            if (output.worst)
                row["worst"] = {{"index", output.worst->index},
                                {"expected", output.worst->expected},
                                {"actual", output.worst->actual}};
        }
        if (!output.problem.empty()) row["problem"] = output.problem;
        outputs.push_back(std::move(row));
    }
    return {{"inputs", report.inputsFrom},      {"expected", report.expectedFrom},
            {"repeats", report.repeats},        {"median_ms", report.medianMilliseconds},
            {"min_ms", report.minMilliseconds}, {"compared", report.compared},
            {"matches", report.matches},        {"outputs", outputs}};
}
std::string dump(const Json& json) {
    // Names may hold bytes that are no UTF-8; JSON cannot.
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cutaway::cli
