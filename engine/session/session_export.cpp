// Runs as folders that stand alone.
#include <algorithm>
#include <filesystem>

#include "cutaway/export.h"
#include "cutaway/guarded.h"
#include "engine/cache/build_id.h"
#include "engine/cache/value_store.h"
#include "engine/codegen/host_printer.h"
#include "engine/exporting/export_folder.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/schedule.h"
#include "engine/session/arguments.h"
#include "engine/session/chosen_program.h"
#include "engine/session/export_check.h"
#include "engine/session/run_inputs.h"
#include "engine/session/training_step.h"
#include "engine/support/hash.h"
#include "engine/support/shell_words.h"

namespace cutaway {
namespace {

/// As a program without an engine beside it. One that cannot be printed has no host program.
Result<PlannedProgram> plannedAlone(const std::vector<Snapshot>& graphs, const HostPrinting& how, std::string& source,
                                    const Progress& progress) {
    CT_TRY(const Snapshot planned, scheduled(graphs.front(), kCpuTarget, progress));
    CT_TRY(PlannedProgram program, planProgram({forExport(planned)}, {}, kCpuTarget, {}, progress));
    if (program.whyNoHost) return program;
    auto printed = printHost(program.host, how);
    if (printed) source = std::move(*printed);
    else program.whyNoHost = std::move(printed).error();
    return program;
}

NamedTensors inputsOf(const HostFunction& function, const std::vector<Tensor>& bound) {
    NamedTensors named;
    for (size_t i = 0; i < function.parameters.size(); ++i)
        if (!function.parameters[i].isHeld() && bound[i].defined())
            named.emplace_back(function.parameters[i].name, bound[i]);
    return named;
}
NamedTensors weightsOf(const HostProgram& program, const std::vector<Tensor>& constants,
                       const std::vector<Tensor>& bound) {
    NamedTensors named;
    for (size_t i = 0; i < constants.size(); ++i) named.emplace_back(program.constants[i], constants[i]);
    const HostFunction& function = program.functions[0];
    for (size_t i = 0; i < function.parameters.size(); ++i)
        if (function.parameters[i].isHeld()) named.emplace_back(function.parameters[i].name, bound[i]);
    return named;
}

/// The folder that was asked for, or one of the user's cache that is named after the code (AOT-15).
Result<std::string> folderFor(const std::string& asked, const std::string& source) {
    if (!asked.empty()) return asked;
    const std::string store = ValueStore::defaultPath();
    if (store.empty())
        return Error{ErrorCode::NotFound, "there is no home for the export", "", {"name a folder for it"}};
    const std::filesystem::path folder =
        std::filesystem::path(store).parent_path() / "exports" /
        ("c" + Hasher().add(std::string_view(source)).add(std::string_view(buildId())).finish().hex());
    std::error_code failed;
    std::filesystem::create_directories(folder.parent_path(), failed);
    if (failed) return Error{ErrorCode::ToolFailed, failed.message(), folder.string(), {}};
    return folder.string();
}

/// What ahead-of-time compiling refuses (AOT-12, 14, 15), in PyTorch's words. That a graph has to return a tuple is a
/// limit of PyTorch's own, and holds with parity only.
Result<void> checkExport(const Module& opened, const CompileRequest& request, const std::string& folder) {
    if (folder.ends_with(".pt2"))
        return Error{ErrorCode::InvalidInput,
                     "The output path for aot_compile shouldn't have an extension with .pt2",
                     folder,
                     {"an export is a folder with a library; a package is what "
                      "torch._inductor.aoti_compile_and_package writes"}};
    const std::vector<Node*> inputs = opened.graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i)
        if ((i >= opened.inputs.size() || opened.inputs[i].isGiven()) && inputs[i]->type().isOpaque())
            return unsupported(
                "TorchBind objects found in inputs. TorchBind object inputs are not supported in AOTInductor. TorchBind "
                "objects can only be attributes.",
                "input '" + inputs[i]->name() + "'");
    for (const Node& node : opened.graph().nodes())
        if (request.parity && node.isOutput() && !node.arg(0).list())
            return unsupported(
                "Graph output must be a tuple(). This is so that we can avoid pytree processing of the outputs. Please "
                "change the module to have tuple outputs.");
    return {};
}

/// The name asked for, else one made of the file's. One that a program is linked with anyway is not taken: its -l would
/// find this library in place of the system's.
Result<std::string> libraryName(const std::string& asked, const std::string& file) {
    constexpr std::string_view kTaken[] = {"c",        "m",     "dl",     "rt",   "pthread", "util", "mvec", "gomp",
                                           "stdc",     "gcc",   "gcc_s",  "dnnl", "lapack",  "blas", "anl",  "resolv",
                                           "openblas", "crypt", "atomic", "asan", "tsan",    "ubsan"};
    std::string name = exportNameOf(asked.empty() ? file : asked);
    if (std::find(std::begin(kTaken), std::end(kTaken), name) == std::end(kTaken)) return name;
    if (asked.empty()) return name + "_model";
    return Error{ErrorCode::InvalidInput,
                 "lib" + name + ".so is a library of the system, which programs that use the export are linked with",
                 "--name " + asked,
                 {"take another name, such as " + name + "_model"}};
}

/// Results have the names that they have in the model, where its results are the program's: before the program's output
/// may stand what passes put there (inductor_force_stride_order).
void addOutputNames(const Module& model, const Module& program, std::vector<std::string>& names) {
    const std::vector<size_t> own = userOutputs(model), results = userOutputs(program);
    for (size_t i = names.size(); i < program.graph().outputs().size(); ++i) {
        const auto at = static_cast<size_t>(std::find(results.begin(), results.end(), i) - results.begin());
        const bool same = own.size() == results.size() && at < results.size();
        names.push_back(same ? outputName(model, own[at]) : outputName(program, i));
    }
}

}  // namespace

Result<ExportReport> exportProgram(Session& session, RunId id, const ExportOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<ExportReport> {
        Session::State& state = session.state();
        CT_TRY(Session::State::Run * run, state.run(id));
        CT_TRY_VOID(checkLowered(run->trace));
        const bool training = run->trace.request.mode == Mode::Training;
        if (run->trace.request.target == Target::Cuda)
            return unsupported("a run for a GPU is not exported", {}, {"compile it for the CPU"});
        CT_TRY(const ExportForm form, exportForm(options));
        CT_TRY_VOID(checkExport(*state.input, run->trace.request, options.folder));
        const std::lock_guard turn(run->turn);
        TrainingStep step{run->trace.result(), {}};
        if (training) {
            CT_TRY(step, trainingStep(state, run->trace, progress));
        }
        const Snapshot& graph = step.graph;
        CT_TRY(RunInputs inputs,
               chooseInputs(*state.input, state.sampleInputs, options.inputsFile, state.noSamples, graph.get()));
        CT_TRY(const CalledGraph called, training ? calledFor(graph, state, options.inputsFile)
                                                  : calledWith(*state.input, graph, std::move(inputs.user)));
        CT_TRY(const Snapshot complete, withConstants(*called.graph, progress));
        const Snapshot module = complete ? complete : called.graph;
        // Of a training step every input has its value already.
        CT_TRY(const std::vector<Tensor> bound,
               training ? Result<std::vector<Tensor>>(called.user) : bindInputs(*module, called.user));
        ExportReport report;
        CT_TRY(std::string name, libraryName(options.name, state.input->origin.file));
        HostPrinting how{std::move(name), {}, {}};
        const std::vector<Node*> ports = module->graph().placeholders();
        for (size_t i = 0; i < std::min(ports.size(), module->inputs.size()); ++i)
            if (!module->inputs[i].isGiven()) how.originals.emplace(ports[i]->name(), module->inputs[i].target);
        how.outputs = step.outputs;
        addOutputNames(*state.input, *module, how.outputs);
        progress.say(0.1, "scheduling");
        std::string source;
        const auto plan = [&](const std::vector<Snapshot>& graphs) {
            return plannedAlone(graphs, how, source, progress);
        };
        CT_TRY(const ChosenProgram chosen, chooseSizes({module}, plan, {&bound}));
        const PlannedProgram& program = *chosen.program;
        if (program.whyNoHost) return *program.whyNoHost;
        report.fixedSizes = chosen.whyFixed;
        CT_TRY(const std::vector<Tensor> constants, constantsOf(program.host, program.graphs[0]));
        std::vector<PrintedKernel> printed;
        for (const LoweredKernel& kernel : program.kernels) printed.push_back(printCpp(kernel));

        ExportContents contents;
        contents.name = how.name;
        contents.model = std::filesystem::path(state.input->origin.file).filename().string();
        contents.request = run->trace.request.text();
        contents.program = &program.host;
        contents.printed = &printed;
        contents.source = &source;
        contents.originals = &how.originals;
        contents.form = form;
        contents.weights = weightsOf(program.host, constants, bound);
        contents.inputs = inputsOf(program.host.functions[0], bound);
        const CheckedExport checked{contents.name,     form,         module.get(),          &bound,
                                    &contents.weights, &how.outputs, options.timeoutSeconds};
        if (options.check)
            contents.inspect = [&](const std::string& folder) -> Result<void> {
                CT_TRY(report.check, checkExported(folder, checked, progress));
                return {};
            };
        CT_TRY(report.folder, folderFor(options.folder, source));
        CT_TRY(ExportedFolder folder, writeExport(report.folder, contents, {{}, options.timeoutSeconds}, progress));
        report.name = contents.name;
        report.target = form.target;
        report.library = std::move(folder.library);
        report.files = std::move(folder.files);
        report.inputsFrom = inputs.from;
        const bool archive = report.folder.ends_with(".zip");
        report.command = (archive ? "unzip -q " + shellWord(report.folder) + " && " : std::string()) + "cmake -S " +
                         shellWord(archive ? report.name : report.folder) +
                         " -B build && cmake --build build && build/" + report.name + "_main";
        report.compileLog = std::move(folder.compiled.log);
        report.compileSeconds = folder.compiled.seconds;
        if (archive) {
            std::error_code none;
            const auto bytes = std::filesystem::file_size(report.folder, none);
            report.bytes = none ? 0 : static_cast<int64_t>(bytes);
            return report;
        }
        for (const std::string& file : report.files) {
            std::error_code none;
            const auto bytes = std::filesystem::file_size(std::filesystem::path(report.folder) / file, none);
            report.bytes += none ? 0 : static_cast<int64_t>(bytes);
        }
        return report;
    });
}

}  // namespace cutaway
