// Running what was compiled, and comparing.
#include "cutaway/backends.h"
#include "cutaway/guarded.h"
#include "engine/autograd/metadata.h"
#include "engine/interpret/interpret.h"
#include "engine/schedule/fusion.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/execution.h"
#include "engine/session/output_report.h"
#include "engine/session/run_inputs.h"
#include "engine/session/run_notes.h"
#include "engine/session/session_state.h"
#include "engine/session/tied_names.h"
#include "engine/session/ties.h"
#include "engine/session/training_run.h"
#include "engine/session/written_values.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

bool isTangent(const InputSpec& input) { return input.kind == InputSpec::Kind::Tangent; }

/// In a joint graph that was made here and not split the gradients of the results are inputs, for which no file has
/// values. They are the inputs of a file that holds a joint graph.
Result<void> checkTrainable(const Module& input, const CompileTrace& trace) {
    if (trace.isSplit() || std::any_of(input.inputs.begin(), input.inputs.end(), isTangent)) return {};
    for (const InputSpec& one : trace.result()->inputs)
        if (isTangent(one))
            return unsupported("a joint graph is run as forward and backward, and this run did not split it", {},
                               {"compile it for training, with all stages"});
    return {};
}

/// A tensor for every input of the graph that runs: `result`, or a copy put into `fixed` where the user gave values for
/// arguments that are frozen constants, or for nodes (valuesFile).
Result<RunInputs> called(const Session::State& state, const Snapshot& result, const RunOptions& options,
                         Snapshot& fixed) {
    // Inputs are named as in the file; passes never rename placeholders.
    CT_TRY(RunInputs inputs,
           chooseInputs(*state.input, state.sampleInputs, options.inputsFile, state.noSamples, result.get()));
    const size_t given = inputs.user.size();
    CT_TRY(CalledGraph graph, calledWith(*state.input, result, std::move(inputs.user)));
    inputs.user = std::move(graph.user);
    if (const size_t frozen = given - inputs.user.size(); frozen > 0)
        inputs.from += "; " + std::to_string(frozen) + " of " + std::to_string(given) +
                       " are constants of the frozen graph, with these values";
    if (graph.graph != result) fixed = graph.graph;
    if (!options.valuesFile.empty()) {
        CT_TRY(fixed, withValues(*graph.graph, options.valuesFile, inputs.user));
        inputs.from += "; values of nodes from " + options.valuesFile;
    }
    CT_TRY(inputs.user, bindInputs(fixed ? *fixed : *result, inputs.user));
    return inputs;
}

}  // namespace

Result<RunReport> Session::run(RunId id, const RunOptions& options, const Progress& progress) {
    return m_state->repeatable("run", id, &options, [&] { return m_state->execute(id, options, progress); });
}

Result<void> Session::canRun(RunId id, Backend backend) const {
    return guarded([&]() -> Result<void> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        CT_TRY_VOID(checkBackend(backend, found->trace.request.target));
        CT_TRY_VOID(backend == Backend::Reference ? checkPasses(found->trace) : checkLowered(found->trace));
        return checkTrainable(*m_state->input, found->trace);
    });
}

Result<void> Session::canBuild(RunId id) const {
    return guarded([&]() -> Result<void> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        return checkLowered(found->trace);
    });
}

Result<RunReport> Session::State::execute(RunId id, const RunOptions& options, const Progress& progress) {
    CT_TRY(Run * found, run(id));
    CT_TRY_VOID(checkBackend(options.backend, found->trace.request.target));
    CT_TRY_VOID(checkPasses(found->trace));
    CT_TRY_VOID(checkTrainable(*input, found->trace));
    const std::lock_guard turn(found->turn);
    if (found->trace.isSplit()) return runTraining(*this, *found, options, progress);
    if (!options.gradientsFile.empty() || !options.expectGradientsFile.empty())
        return invalidInput("only a run for training computes gradients: compile with --mode training");
    CT_TRY_VOID(checkSizes(*found->trace.result(), options.backend));
    Snapshot fixed;
    CT_TRY(const RunInputs inputs, called(*this, found->trace.result(), options, fixed));
    const Module& module = fixed ? *fixed : *found->trace.result();
    const std::vector<Tensor>& bound = inputs.user;
    CT_TRY_VOID(checkWrittenInputs(module, bound));
    const std::vector<size_t> positions = userOutputs(module);
    std::set<std::string> names;
    for (const size_t position : positions) names.insert(outputName(module, position));
    const std::vector<WrittenValue> written = writtenValues(module, names);
    CT_TRY(const RowJudge judge, RowJudge::of(options, progress));
    std::optional<RunInputs> expected;
    std::map<std::string, Tensor> expectedWritten;
    if (!options.expectFile.empty()) {
        CT_TRY(expected, readExpected(*input, module, options.expectFile, namesOf(written, *input), expectedWritten));
    }
    Execution execution;
    switch (options.backend) {
        case Backend::Reference: {
            CT_TRY(execution, runInterpreted(module, bound, options.repeat, progress));
            break;
        }
        case Backend::Cpu:
        case Backend::Cuda: {
            CT_TRY(execution, runCompiled(*found, {}, fixed, bound, options, progress));
            if (options.valuesFile.empty()) {
                found->kernelMicroseconds = std::move(execution.microseconds);
                found->refusedKernels = execution.refused;
            }
            break;
        }
    }

    RunReport report;
    report.inputsFrom = inputs.from;
    if (const size_t made = tensorsWithoutData(module).size())
        report.inputsFrom += "; " + std::to_string(made) + " tensors without data made up from their names, seed 0";
    reportTimes(execution, nullptr, report);
    report.cost = execution.cost;
    for (const auto& [kernel, sentence] : execution.refused) report.refused.push_back(sentence);
    report.compared = expected.has_value();
    if (expected) report.expectedFrom = expected->from;
    const std::vector<Argument> returned = module.graph().outputs();
    for (size_t i = 0; i < positions.size(); ++i) {
        report.outputs.push_back(
            reportOf(outputName(module, positions[i]), returned[positions[i]], execution.outputs[positions[i]],
                     expected && expected->user[i].defined() ? &expected->user[i] : nullptr, toleranceOf(execution)));
        if (expected && expected->user[i].defined())
            sayTies(module, bound, positions[i], execution.outputs[positions[i]], expected->user[i], progress,
                    report.outputs.back());
        if (report.outputs.back().compared)
            CT_TRY_VOID(judge.judge(execution.outputs[positions[i]], expected->user[i], report.outputs.back()));
        report.matches &= !report.outputs.back().compared || report.outputs.back().within;
    }
    for (const WrittenValue& value : written) {
        const auto known = findTied(expectedWritten, *input, value.name);
        report.written.push_back(reportOf(value.name, valueOf(value, execution),
                                          known != expectedWritten.end() ? &known->second : nullptr,
                                          toleranceOf(execution)));
        if (report.written.back().compared)
            CT_TRY_VOID(judge.judge(valueOf(value, execution), known->second, report.written.back()));
        report.matches &= !report.written.back().compared || report.written.back().within;
    }
    report.notes = notesOf(module, report, options.backend != Backend::Reference,
                           fusionOptions(found->trace.request).roundsHalves, execution.tf32);
    return report;
}

namespace {

/// The backward's code behind the forward's.
void append(BuildInfo& forward, const BuildInfo& backward) {
    forward.source = "// ---- forward\n" + forward.source + "\n// ---- backward\n" + backward.source;
    forward.compileLog += backward.compileLog;
    forward.compileSeconds += backward.compileSeconds;
    forward.kernels.insert(forward.kernels.end(), backward.kernels.begin(), backward.kernels.end());
}

}  // namespace

Result<BuildInfo> Session::build(RunId id, Target target, const Progress& progress) {
    return m_state->repeatable("build", id, nullptr, [&]() -> Result<BuildInfo> {
        CT_TRY(State::Run * found, m_state->run(id));
        const std::lock_guard turn(found->turn);
        CT_TRY_VOID(checkTarget(compiledBackend(target), found->trace.request.target));
        // Of a training run both halves, one behind the other.
        const bool split = found->trace.isSplit();
        CT_TRY(const CpuProgram* program, programOf(*found, split ? "forward" : "", nullptr, progress));
        BuildInfo info = program->info();
        if (split) {
            CT_TRY(const CpuProgram* backward, programOf(*found, "backward", nullptr, progress));
            append(info, backward->info());
        }
        for (size_t i = 0; i < info.kernels.size() && i < found->kernelMicroseconds.size(); ++i)
            info.kernels[i].microseconds = found->kernelMicroseconds[i];
        for (const auto& [kernel, sentence] : found->refusedKernels)
            if (kernel < info.kernels.size()) info.kernels[kernel].reasons.push_back(sentence);
        return info;
    });
}

}  // namespace cutaway
