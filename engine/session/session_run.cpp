// Running what was compiled, and comparing.
#include <cmath>

#include "cutaway/guarded.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/peak.h"
#include "engine/interpret/specialize.h"
#include "engine/runtime/reference.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/run_inputs.h"
#include "engine/session/session_state.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

void describeValues(const Tensor& tensor, OutputReport& report) {
    const int64_t count = tensor.numel();
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double value = toDouble(tensor.item(i));
        if (!std::isfinite(value)) {
            ++report.nonFinite;
            continue;
        }
        report.minimum = finite ? std::min(report.minimum, value) : value;
        report.maximum = finite ? std::max(report.maximum, value) : value;
        sum += value;
        ++finite;
    }
    report.mean = finite ? sum / static_cast<double>(finite) : 0;
}

void compareValues(const Tensor& actual, const Tensor& expected, OutputReport& report) {
    report.compared = true;
    const Comparison result = compareOutput(actual, expected);
    report.maxAbsoluteError = result.maxAbsoluteError;
    report.maxExpected = result.maxExpected;
    if (!result.sameType) {
        report.problem = "expected " + TensorType::contiguous(expected.dtype(), toSymDims(expected.sizes())).text();
        return;
    }
    report.within = result.within;
    report.worst = worstElement(result, actual, expected);
    if (!result.within)
        report.problem = std::to_string(result.mismatches) + " of " + std::to_string(actual.numel()) +
                         " elements differ" + (report.worst ? "; " + elementText(*report.worst) : "");
}

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Execution {
    std::vector<Tensor> outputs;
    double minimum = 0, median = 0;  // milliseconds
};
Result<Execution> runInterpreted(const Module& module, const std::vector<Tensor>& inputs, int repeat,
                                 const Progress& progress) {
    CT_TRY(ReferenceRun run, runReference(module, inputs, {.repeat = repeat}, progress));
    Execution execution;
    execution.outputs = std::move(run.outputs);
    execution.minimum = *std::min_element(run.milliseconds.begin(), run.milliseconds.end());
    execution.median = median(run.milliseconds);
    return execution;
}

/// The run's result with numbers for its size symbols: those of the inputs, or without inputs its example values.
Result<Snapshot> withNumbers(const Snapshot& module, const std::vector<Tensor>* inputs, SymbolValues& values) {
    const std::vector<std::string> symbols = freeSymbols(*module);
    if (symbols.empty()) return module;
    values = hintedSymbols(*module);
    if (inputs) {
        CT_TRY(values, solveSymbols(*module, *inputs));
    }
    auto fixed = std::make_shared<Module>(*module);
    CT_TRY_VOID(specialize(*fixed, values));
    for (const std::string& symbol : freeSymbols(*fixed))
        return unsupported("kernels need numbers, and size symbol '" + symbol + "' has none", {},
                           {"set it when opening: --size " + symbol + "=8",
                            "or run with --backend reference, which takes sizes that depend on data as they come"});
    return Snapshot(std::move(fixed));
}

Error failureOf(const CompileTrace& trace) {
    const StepInfo& step = trace.steps.back().info;
    return {ErrorCode::InvalidInput,
            "compiling failed, so there is nothing to run: " + step.error,
            "step " + step.name,
            {}};
}

Result<void> checkLowered(const CompileTrace& trace) {
    if (trace.failed()) return failureOf(trace);
    return {};
}

/// A graph that a failed pass left unfinished would give wrong results. The schedule is no pass: a graph that it
/// refuses can still be interpreted.
Result<void> checkPasses(const CompileTrace& trace) {
    if (!trace.failed() || trace.steps.back().pass == nullptr) return {};
    Error error = failureOf(trace);
    error.notes = {"to run without it: --disable " + trace.steps.back().info.name};
    return error;
}

/// In a training run the gradients of the results are inputs, for which no file has values.
Result<void> checkTrainable(const Module& module) {
    for (const InputSpec& input : module.inputs)
        if (input.kind == InputSpec::Kind::Tangent)
            return unsupported("graphs compiled for training cannot be run yet", {},
                               {"compile for inference to run it"});
    return {};
}

/// Checks that types alone decide, before inputs are made and before anything is compiled.
Result<void> checkSizes(const Module& module, Backend backend) {
    std::vector<MemoryWish> wishes = {{"inputs and weights", inputBytes(module)}, {"results", outputBytes(module)}};
    if (backend == Backend::Reference)
        wishes.insert(wishes.begin() + 1, {"values", peakBytes(module)});  // kernels keep fewer
    return checkMemory("the run", wishes, Whose::ChildOwn);
}

Result<const CpuProgram*> programOf(Session::State::Run& run, const std::vector<Tensor>* inputs,
                                    const Progress& progress) {
    CT_TRY_VOID(checkLowered(run.trace));
    if (!inputs && run.cpu) return &*run.cpu;  // of the sizes that it last ran with
    SymbolValues sizes;
    CT_TRY(Snapshot module, withNumbers(run.trace.result(), inputs, sizes));
    if (!run.cpu || run.cpuSizes != sizes) {
        progress.say(-1, "compiling kernels");
        CT_TRY(CpuProgram program, buildCpu(std::move(module), {}, progress));
        run.cpu = std::move(program);
        run.cpuSizes = std::move(sizes);
    }
    return &*run.cpu;
}

/// `given`: the graph to run in place of the run's result; null for that.
Result<Execution> runCompiled(Session::State::Run& run, const Snapshot& given, const std::vector<Tensor>& inputs,
                              const RunOptions& options, const Progress& progress) {
    std::optional<CpuProgram> own;
    if (given) {
        SymbolValues sizes;
        CT_TRY(Snapshot module, withNumbers(given, &inputs, sizes));
        CT_TRY(own, buildCpu(std::move(module), {}, progress));
    }
    const CpuProgram* program = own ? &*own : nullptr;
    if (!program) {
        CT_TRY(program, programOf(run, &inputs, progress));
    }
    progress.say(-1, "running");
    CpuRunOptions runOptions;
    runOptions.repeat = std::max(1, options.repeat);
    runOptions.timeoutSeconds = options.timeoutSeconds;
    CT_TRY(CpuRun result, runCpu(*program, inputs, runOptions, progress));
    if (!own) run.kernelMicroseconds = std::move(result.microseconds);
    return Execution{std::move(result.outputs), result.minMilliseconds, result.medianMilliseconds};
}

}  // namespace

Result<RunReport> Session::run(RunId id, const RunOptions& options, const Progress& progress) {
    return m_state->repeatable("run", id, &options, [&] { return m_state->execute(id, options, progress); });
}

Result<void> Session::canRun(RunId id, Backend backend) const {
    return guarded([&]() -> Result<void> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        CT_TRY_VOID(backend == Backend::Reference ? checkPasses(found->trace) : checkLowered(found->trace));
        return checkTrainable(*found->trace.result());
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
    CT_TRY_VOID(checkPasses(found->trace));
    CT_TRY_VOID(checkTrainable(*found->trace.result()));
    CT_TRY_VOID(checkSizes(*found->trace.result(), options.backend));
    const std::lock_guard turn(found->turn);
    // Inputs are named as in the file; passes never rename or drop placeholders.
    CT_TRY(RunInputs inputs, chooseInputs(*input, sampleInputs, options.inputsFile, noSamples));
    Snapshot fixed;
    if (!options.valuesFile.empty()) {
        CT_TRY(fixed, withValues(*found->trace.result(), options.valuesFile, inputs.user));
    }
    const Module& module = fixed ? *fixed : *found->trace.result();
    CT_TRY(const std::vector<Tensor> bound, bindInputs(module, inputs.user));
    const std::vector<size_t> positions = userOutputs(module);
    std::optional<RunInputs> expected;
    if (!options.expectFile.empty()) {
        CT_TRY(expected, readExpected(*input, module, options.expectFile));
    }
    Execution execution;
    switch (options.backend) {
        case Backend::Reference: {
            CT_TRY(execution, runInterpreted(module, bound, options.repeat, progress));
            break;
        }
        case Backend::Cpu: {
            CT_TRY(execution, runCompiled(*found, fixed, bound, options, progress));
            break;
        }
        case Backend::Cuda:
            return unsupported("there is no CUDA backend yet", {}, {"use the backend reference or cpu"});
    }

    RunReport report;
    report.inputsFrom = inputs.from;
    if (fixed) report.inputsFrom += "; values of nodes from " + options.valuesFile;
    if (const size_t made = tensorsWithoutData(module).size())
        report.inputsFrom += "; " + std::to_string(made) + " tensors without data made up from their names, seed 0";
    report.repeats = std::max(1, options.repeat);
    report.minMilliseconds = execution.minimum;
    report.medianMilliseconds = execution.median;
    report.compared = expected.has_value();
    if (expected) report.expectedFrom = expected->from;
    const auto values = module.graph().outputs();
    for (size_t i = 0; i < positions.size(); ++i) {
        const Tensor& output = execution.outputs[positions[i]];
        OutputReport row;
        row.name = values[positions[i]].node() ? values[positions[i]].node()->name() : "output_" + std::to_string(i);
        if (output.defined()) {
            row.type = TensorType::contiguous(output.dtype(), toSymDims(output.sizes())).text();
            describeValues(output, row);
            if (expected) compareValues(output, expected->user[i], row);
        } else {
            row.type = "None";
            row.compared = expected.has_value();
            if (expected)
                row.problem =
                    "expected " +
                    TensorType::contiguous(expected->user[i].dtype(), toSymDims(expected->user[i].sizes())).text();
        }
        report.matches &= !row.compared || row.within;
        report.outputs.push_back(std::move(row));
    }
    return report;
}

Result<BuildInfo> Session::build(RunId id, Target target, const Progress& progress) {
    return m_state->repeatable("build", id, nullptr, [&]() -> Result<BuildInfo> {
        CT_TRY(State::Run * found, m_state->run(id));
        const std::lock_guard turn(found->turn);
        if (target == Target::Cuda) return unsupported("there is no CUDA backend yet", {}, {"build for the CPU"});
        CT_TRY(const CpuProgram* program, programOf(*found, nullptr, progress));
        BuildInfo info = program->info();
        for (size_t i = 0; i < info.kernels.size() && i < found->kernelMicroseconds.size(); ++i)
            info.kernels[i].microseconds = found->kernelMicroseconds[i];
        return info;
    });
}

}  // namespace cutaway
