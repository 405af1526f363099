#include "cutaway/debug_compile.h"

#include <algorithm>
#include <filesystem>

#include "cutaway/guarded.h"
#include "engine/runtime/reference.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/graph_bundle.h"
#include "engine/session/run_inputs.h"
#include "engine/session/sequential_backend.h"
#include "engine/session/session_state.h"
#include "engine/support/files.h"
#include "engine/support/number_text.h"
#include "engine/support/shell_words.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

std::string minifyCommand(const DebugCompileOptions& options) {
    const auto in = [&](const char* name) { return shellWord((fs::path(options.folder) / name).string()); };
    const std::string request = options.request.text();
    return "cutaway-cli minify " + shellWord(options.folder) + " --check crash --inputs " + in("inputs.safetensors") +
           " -o " + in("minified") + (request.empty() ? "" : " " + request);
}

/// The user's inputs of the graph as it was opened, in its order.
std::vector<Tensor> givenBoundInputs(const Module& module, const std::vector<Tensor>& bound) {
    std::vector<Tensor> given;
    for (size_t i = 0; i < bound.size(); ++i)
        if (i >= module.inputs.size() || module.inputs[i].isGiven() ||
            module.inputs[i].kind == InputSpec::Kind::ConstantInput || module.inputs[i].kind == InputSpec::Kind::Token)
            given.push_back(bound[i]);
    return given;
}

bool metaOnly(const Module& module) {
    for (const Node* input : module.graph().placeholders())
        if (const TensorType* type = input->type().tensor(); type && type->device.type == DeviceType::Meta) return true;
    return false;
}

/// Runs a graph once, for what it takes and whether it does.
std::string run(const Module& module, const std::vector<Tensor>& inputs, double timeoutSeconds,
                const Progress& progress, bool& runs) {
    ReferenceOptions how;
    how.timeoutSeconds = timeoutSeconds;
    const auto ran = runReference(module, inputs, how, progress);
    runs = ran.has_value();
    if (!ran) return "does not run: " + ran.error().text();
    return std::to_string(ran->outputs.size()) + (ran->outputs.size() == 1 ? " result in " : " results in ") +
           shortNumber(ran->milliseconds.back()) + " ms";
}

/// The slot that the others lead to.
void warmUp(const Sequential& compiled, const std::vector<Tensor>& inputs, const DebugCompileOptions& options,
            const Progress& progress, DebugCompileReport& report) {
    if (metaOnly(*compiled.graph)) {
        report.steps.push_back({"warm-up", "left out: an input is on the meta device", false, {}});
        return;
    }
    bool runs = false;
    const std::string what = run(*compiled.graph, inputs, options.timeoutSeconds, progress, runs);
    report.steps.push_back({"warm-up", what, false, {}});
    if (!runs) report.runs = false;
}

Result<void> finish(const DebugCompileOptions& options, const Sequential& compiled, DebugCompileReport& report) {
    const fs::path folder(options.folder);
    PrintOptions plain;
    plain.comments = false;
    report.code = printText(*compiled.graph, plain).text;
    if (options.backend == SequentialBackend::Draw) {
        CT_TRY_VOID(writeFile((folder / "graph.dot").string(), drawn(*compiled.graph)));
        report.files.push_back("graph.dot");
    } else if (options.backend == SequentialBackend::Ts || options.backend == SequentialBackend::SimpleTs) {
        CT_TRY_VOID(writeFile((folder / "compiled.py").string(), report.code));
        report.files.push_back("compiled.py");
    }
    return {};
}

}  // namespace

Result<DebugCompileReport> debugCompile(Session& session, const DebugCompileOptions& options,
                                        const Progress& progress) {
    return guarded([&]() -> Result<DebugCompileReport> {
        const Session::State& state = session.state();
        if (!state.input) return Error{ErrorCode::NotFound, "no model is open", {}, {}};
        DebugCompileReport report;
        CT_TRY(const CalledGraph called, calledFor(state.input, state, options.inputsFile));
        GraphBundle bundle;
        progress.say(0, "writing the bundle");
        CT_TRY(bundle.module, withOwnTensors(*state.input));
        bundle.inputs = givenBoundInputs(*state.input, called.user);
        bundle.request = options.request.text();
        CT_TRY(report.files, writeBundle(options.folder, bundle));
        report.command = minifyCommand(options);

        progress.say(0.2, "reading the bundle");
        CT_TRY(const auto reloaded, readBundle(options.folder));
        report.difference = structuralDifference(*bundle.module, *reloaded);
        report.reloaded = report.difference.empty();
        report.ran = run(*reloaded, bundle.inputs, options.timeoutSeconds, {progress.cancel, {}}, report.runs);
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "cancelled", {}, {}};

        progress.say(0.5, "compiling");
        CT_TRY(const Sequential compiled,
               compileSequentially(*bundle.module, options.backend, options.request.parity, {progress.cancel, {}}));
        report.steps = compiled.steps;
        if (options.backend == SequentialBackend::Ts)
            warmUp(compiled, bundle.inputs, options, {progress.cancel, {}}, report);
        const auto changed =
            std::any_of(state.input->outputs.begin(), state.input->outputs.end(), [](const auto& spec) {
                return spec.kind == OutputSpec::Kind::BufferMutation || spec.kind == OutputSpec::Kind::InputMutation ||
                       spec.kind == OutputSpec::Kind::ParameterMutation;
            });
        if (changed)
            report.remarks.push_back(
                "values that the program writes back to buffers or inputs are results of the bundle");
        CT_TRY_VOID(finish(options, compiled, report));
        return report;
    });
}

}  // namespace cutaway
