// run: the model, on inputs.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/backends.h"
#include "cutaway/node_names.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

void printOutputs(const std::vector<OutputReport>& outputs) {
    for (const OutputReport& output : outputs) {
        print("  %-20s %-24s min %-12.6g max %-12.6g mean %-12.6g%s", output.name.c_str(), output.type.c_str(),
              output.minimum, output.maximum, output.mean,
              output.nonFinite ? (" " + std::to_string(output.nonFinite) + " not finite").c_str() : "");
        if (output.compared)
            print("  %s: max abs error %.3g of %.3g", output.within ? "ok" : "DIFFERS", output.maxAbsoluteError,
                  output.maxExpected);
        for (const std::string& text : {output.problem, output.remark})
            if (!text.empty()) print("  %s", text.c_str());
        print("\n");
    }
}

void printTraining(const TrainingReport& training) {
    std::cout << "gradients:\n";
    printOutputs(training.gradients);
    print("loss %.9g (%s)\n", training.loss, training.lossFrom.c_str());
    print("forward %.3f ms, backward %.3f ms\n", training.forwardMilliseconds, training.backwardMilliseconds);
    print("saved for the backward: %s of activations (estimated %s), %s with inputs\n",
          bytesText(training.savedBytes).c_str(), bytesText(training.estimatedSavedBytes).c_str(),
          bytesText(training.heldBytes).c_str());
}

/// Where half of the runs lie, if there are enough to say so.
std::string quartiles(const RunReport& report) {
    if (report.repeats < 4) return {};
    constexpr size_t kLetters = 80;
    char text[kLetters];
    std::snprintf(text, sizeof text, "; half of them %.3f to %.3f ms", report.firstQuartile, report.thirdQuartile);
    return text;
}

}  // namespace

void printRun(const RunReport& report) {
    std::cout << "inputs: " << report.inputsFrom << "\n";
    if (report.compared) std::cout << "expected: " << report.expectedFrom << "\n";
    printOutputs(report.outputs);
    if (!report.written.empty()) std::cout << "written to buffers and inputs:\n";
    printOutputs(report.written);
    if (report.training) printTraining(*report.training);
    if (report.repeats > 0)
        print("median %.3f ms, best %.3f ms of %d%s\n", report.medianMilliseconds, report.minMilliseconds,
              report.repeats, quartiles(report).c_str());
    for (const std::string& sentence : report.refused) std::cout << sentence << "\n";
    for (const std::string& note : report.notes) std::cout << "note: " << note << "\n";
    if (const auto& cost = report.cost) {
        print("memory: at most %s in the process that ran it, of them %s weights and %s values; %s here\n",
              bytesText(cost->peakBytes).c_str(), bytesText(cost->weightsBytes).c_str(),
              bytesText(cost->arenaBytes).c_str(), bytesText(cost->programPeakBytes).c_str());
        print("start: %.3f ms beside the runs, after %.3f ms to load code and weights\n", cost->startMilliseconds,
              cost->loadMilliseconds);
    }
}

namespace {

struct TimedCall {
    std::string kernel, kind, node;  // the last that it computes
    double milliseconds = 0, gigabytesPerSecond = 0, percent = 0;
};
/// Calls of the compiled program as last timed, from the slowest on.
Result<std::vector<TimedCall>> timedCalls(Compiled& compiled, Target target) {
    CT_TRY(const BuildInfo build, compiled.session.build(compiled.run, target));
    double all = 0;
    for (const KernelInfo& kernel : build.kernels) all += kernel.microseconds;
    std::vector<TimedCall> calls;
    for (const KernelInfo& kernel : build.kernels) {
        TimedCall call{kernel.name, kernel.kind, {}};
        // In the last graph that has the node: forward and backward of training end at different steps.
        for (size_t at = compiled.steps.size(); at-- > 0 && call.node.empty() && !kernel.nodes.empty();)
            if (auto name = nodeName(compiled.session, {compiled.run, static_cast<int>(at)}, kernel.nodes.back()))
                call.node = *name;
        call.milliseconds = kernel.microseconds / 1000;
        if (kernel.microseconds > 0)
            call.gigabytesPerSecond =
                static_cast<double>(kernel.bytesRead + kernel.bytesWritten) / (kernel.microseconds * 1000);
        call.percent = all > 0 ? 100 * kernel.microseconds / all : 0;
        calls.push_back(std::move(call));
    }
    std::stable_sort(calls.begin(), calls.end(),
                     [](const TimedCall& a, const TimedCall& b) { return a.milliseconds > b.milliseconds; });
    return calls;
}
Json callsJson(const std::vector<TimedCall>& calls) {
    Json rows = Json::array();
    for (const TimedCall& call : calls)
        rows.push_back({{"kernel", call.kernel},
                        {"kind", call.kind},
                        {"node", call.node},
                        {"ms", call.milliseconds},
                        {"gb_per_s", call.gigabytesPerSecond}});
    return rows;
}
void printCalls(const std::vector<TimedCall>& calls) {
    std::cout << "calls:\n";
    for (const TimedCall& call : calls)
        print("  %10.3f ms %5.1f %% %7.1f GB/s  %-10s %-34s %s\n", call.milliseconds, call.percent,
              call.gigabytesPerSecond, call.kernel.c_str(), call.kind.c_str(), call.node.c_str());
}

void addRunOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, backend = "reference", json;
        RunOptions run;
        CompileArguments compile;
        bool calls = false;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option("--inputs", arguments->run.inputsFile,
                    "Input tensors (safetensors), by the inputs' names or in the order of theirs; default: the file's "
                    "sample inputs, else random ones")
        ->type_name("FILE");
    command
        .add_option("--expect", arguments->run.expectFile,
                    "Expected outputs (safetensors), by the outputs' names, as output_0, output_1, or in the order of "
                    "theirs; new values of buffers by the buffers' names; status 1 where one differs")
        ->type_name("FILE");
    command
        .add_option("--judge", arguments->run.judge,
                    "With --expect: a plugin's judge, PLUGIN or PLUGIN.JUDGE, which says whether an output may stand "
                    "for the expected one")
        ->type_name("NAME");
    command
        .add_option(
            "--values", arguments->run.valuesFile,
            "Tensors (safetensors) named after nodes, used instead of what these compute, such as recorded random draws")
        ->type_name("FILE");
    command
        .add_option(
            "--gradients", arguments->run.gradientsFile,
            "With --mode training: write loss, outputs, gradients and new values of buffers (safetensors), these "
            "under the own names of parameters and buffers")
        ->type_name("FILE");
    command
        .add_option("--expect-gradients", arguments->run.expectGradientsFile,
                    "With --mode training: such a file to compare with; status 1 where something differs")
        ->type_name("FILE");
    command
        .add_option("--backend", arguments->backend,
                    "The interpreter, or kernels compiled for the CPU or for an NVIDIA GPU")
        ->check(aBackend());
    command.add_option("--repeat", arguments->run.repeat, "Timed runs")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats));
    command.add_flag(
        "--cold", arguments->run.cold,
        "With --backend cpu or cuda: each timed run finds its memory in no cache, as within a large model; the "
        "memory that fills them counts in peak_bytes");
    addJson(command, arguments->json);
    command.add_flag(
        "--calls", arguments->calls,
        "With --backend cpu or cuda: the time that each call of the program takes, a kernel or a library's");
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(arguments->run.backend, arguments->compile.backend(arguments->backend));
            if (arguments->run.cold && arguments->run.backend == Backend::Reference)
                return invalidInput("--cold applies to --backend cpu and cuda only", "");
            if (arguments->calls && arguments->run.backend == Backend::Reference)
                return invalidInput(
                    "--calls needs --backend cpu or cuda: the interpreter has no program whose calls are timed", "");
            // Values for nodes make another graph than the one that is kept.
            const bool toRun = arguments->run.backend == Backend::Cpu && arguments->run.valuesFile.empty();
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile, toRun));
            CT_TRY(const RunReport report, compiled.session.run(compiled.run, arguments->run));
            std::vector<TimedCall> calls;
            if (arguments->calls) {
                CT_TRY(calls, timedCalls(compiled, targetOf(arguments->run.backend)));
            }
            if (arguments->json.empty()) printRun(report);
            if (arguments->json.empty() && arguments->calls) printCalls(calls);
            Json json = toJson(report);
            if (arguments->calls) json["calls"] = callsJson(calls);
            const int written = arguments->json.empty() ? 0 : writeText(arguments->json, dump(json));
            if (!report.matches) return invalidInput("the results differ from the expected ones", arguments->path);
            return written;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> runReports() {
    Json withCalls = shapeOfRun();
    withCalls["calls"] = Json::array({Json{{"kernel", "string: in the generated code"},
                                           {"kind", "string: of loops, or the library and its function"},
                                           {"node", "string: the last that it computes"},
                                           {"ms", "number: median"},
                                           {"gb_per_s", "number: memory read and written in that time"}}});
    return {{"--json", shapeOfRun()}, {"--json --calls", withCalls}};
}

}  // namespace

extern const Command runCommand{.name = "run",
                                .summary = "Runs the model and compares the results",
                                .add = addRunOptions,
                                .refuses = "an output differs from what --expect holds",
                                .reports = runReports};

}  // namespace cutaway::cli
