// loops: the kernels of the compiled code in all their forms, and runs by other plans.
#include "cutaway/loops.h"

#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/files.h"

namespace cutaway::cli {
namespace {

struct LoopsArguments {
    std::string path, kernel, planFile, json;
    std::optional<Listing> listing;
    PlanRunOptions run;
    CompileArguments compile;
};

void printList(const std::vector<LoopKernel>& kernels) {
    for (const LoopKernel& kernel : kernels) {
        std::string nodes;
        for (const std::string& name : kernel.nodeNames) nodes += (nodes.empty() ? "" : ", ") + name;
        print("%-12s %-10s %4d %s  %s\n", kernel.name.c_str(), kernel.kind.c_str(), kernel.calls,
              kernel.calls == 1 ? "call " : "calls", nodes.c_str());
    }
    if (kernels.empty()) std::cout << "no kernels: libraries and reference kernels compute every call\n";
}
Json jsonOf(const std::vector<LoopKernel>& kernels) {
    Json rows = Json::array();
    for (const LoopKernel& kernel : kernels)
        rows.push_back(
            {{"kernel", kernel.name}, {"kind", kernel.kind}, {"calls", kernel.calls}, {"nodes", kernel.nodeNames}});
    return {{"kernels", rows}};
}

void printForms(const KernelLoops& loops) {
    const auto section = [](const std::string& title, const std::string& text) {
        std::cout << "---- " << title << "\n" << text << "\n";
    };
    section("kernel", loops.kernel);
    section("plan", loops.plan);
    for (const LoopForm& step : loops.steps) section("loops after " + step.name, step.text);
    section(loops.target == Target::Cuda ? "CUDA C++" : "C++", loops.source);
}
Json jsonOf(const KernelLoops& loops) {
    Json steps = Json::array();
    for (const LoopForm& step : loops.steps) steps.push_back({{"step", step.name}, {"loops", step.text}});
    return {{"kernel", loops.kernel}, {"plan", loops.plan}, {"steps", steps}, {"source", loops.source}};
}

void printPlanRun(const PlanRun& run) {
    std::cout << "inputs: " << run.inputsFrom << "\n";
    const auto line = [](const char* plan, const PlanTimes& times) {
        print("%-13s kernel %.4f ms, run %.4f ms\n", plan, times.kernelMilliseconds, times.milliseconds);
    };
    line("chosen plan", run.chosen);
    line("this plan", run.given);
    print("medians of %d runs; results: %s\n", run.repeats,
          run.sameBits ? "the same to the bit"
                       : ((run.same ? "the same within tolerance, " : "DIFFERENT: ") + run.difference).c_str());
}
Json jsonOf(const PlanRun& run) {
    const auto times = [](const PlanTimes& of) {
        return Json{{"kernel_ms", of.kernelMilliseconds}, {"run_ms", of.milliseconds}};
    };
    return {{"chosen", times(run.chosen)}, {"given", times(run.given)}, {"repeats", run.repeats},
            {"same_bits", run.sameBits},   {"same", run.same},          {"difference", run.difference},
            {"inputs", run.inputsFrom}};
}

/// Prints or writes, whichever was asked for.
template <class T>
int shownReport(const T& report, const std::string& json, void (*printed)(const T&)) {
    if (!json.empty()) return writeText(json, dump(jsonOf(report)));
    printed(report);
    return 0;
}

Result<int> loops(const LoopsArguments& arguments) {
    CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
    if (arguments.kernel.empty()) {
        CT_TRY(const std::vector<LoopKernel> kernels, loopKernels(compiled.session, compiled.run));
        return shownReport(kernels, arguments.json, printList);
    }
    if (arguments.listing) {
        std::optional<std::string> plan;
        if (!arguments.planFile.empty()) {
            CT_TRY(plan, readTextFile(arguments.planFile, kMaxSettingsFile));
        }
        CT_TRY(const std::string text,
               kernelListing(compiled.session, compiled.run, arguments.kernel, *arguments.listing, plan));
        if (!arguments.json.empty())
            return writeText(arguments.json, dump(Json{{"kernel", arguments.kernel},
                                                       {"listing", std::string(listingName(*arguments.listing))},
                                                       {"text", text}}));
        std::cout << text;
        return 0;
    }
    if (arguments.planFile.empty()) {
        CT_TRY(const KernelLoops forms, kernelLoops(compiled.session, compiled.run, arguments.kernel));
        return shownReport(forms, arguments.json, printForms);
    }
    CT_TRY(const std::string plan, readTextFile(arguments.planFile, kMaxSettingsFile));
    const auto run = runWithPlan(compiled.session, compiled.run, arguments.kernel, plan, arguments.run);
    if (!run) {
        Error error = run.error();
        if (error.where.starts_with("line ")) error.where = arguments.planFile + ", " + error.where;
        return error;
    }
    const int written = shownReport(*run, arguments.json, printPlanRun);
    if (!run->same) return invalidInput("by this plan the results differ: " + run->difference, arguments.planFile);
    return written;
}

void addLoopsOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<LoopsArguments>();
    addModel(command, arguments->path)->required();
    auto* kernel = command.add_option("--kernel", arguments->kernel,
                                      "The forms of this kernel: what it computes, its plan with reasons, its loops "
                                      "after each step, its C++; default: a list of all kernels");
    kernel->type_name("NAME");
    auto* plan = command.add_option("--plan", arguments->planFile,
                                    "Run once as planned and once with this plan of the kernel, in the notation in "
                                    "which --kernel prints it, and compare times and results");
    plan->type_name("FILE")->needs(kernel);
    std::vector<std::string> names;
    for (const Target target : {Target::Cpu, Target::Cuda})
        for (const Listing listing : listingsOf(target)) names.emplace_back(listingName(listing));
    command
        .add_option_function<std::string>(
            "--listing",
            [arguments](const std::string& name) {
                for (const Target target : {Target::Cpu, Target::Cuda})
                    for (const Listing listing : listingsOf(target))
                        if (listingName(listing) == name) arguments->listing = listing;
            },
            "What the compiler makes of the kernel, or of it by --plan: assembly for the CPU; ptx or sass with --device "
            "cuda (sass needs nvdisasm)")
        ->check(CLI::IsMember(names))
        ->needs(kernel);
    command
        .add_option("--inputs", arguments->run.inputsFile,
                    "With --plan: input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE")
        ->needs(plan);
    command.add_option("--repeat", arguments->run.repeat, "With --plan: timed runs of each")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats))
        ->needs(plan);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(loops(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> loopsReports() {
    const Json times{{"kernel_ms", "number: median of all calls of the kernel together"},
                     {"run_ms", "number: median of the whole run"}};
    const Json kernel{{"kernel", "string: name, for --kernel"},
                      {"kind", "string: pointwise, reduction"},
                      {"calls", "integer: that share it"},
                      {"nodes", Json::array({"string: name of a node that it computes"})}};
    return {{"--json", {{"kernels", Json::array({kernel})}}},
            {"--json --kernel",
             {{"kernel", "string: what it computes"},
              {"plan", "string: a choice a line, reasons as comments"},
              {"steps", Json::array({{{"step", "string: name"}, {"loops", "string: the loop nests after it"}}})},
              {"source", "string: C++, of GPUs CUDA C++"}}},
            {"--json --listing",
             {{"kernel", "string: name"}, {"listing", "string: assembly, ptx, sass"}, {"text", "string"}}},
            {"--json --plan",
             {{"chosen", times},
              {"given", times},
              {"repeats", "integer: timed runs of each"},
              {"same_bits", "boolean: the results are equal bit for bit"},
              {"same", "boolean: they are within tolerance"},
              {"difference", "string: a sentence"},
              {"inputs", "string: where they come from"}}}};
}

}  // namespace

extern const Command loopsCommand{.name = "loops",
                                  .summary = "The loops of the compiled kernels, and runs by other plans",
                                  .add = addLoopsOptions,
                                  .refuses = "by the plan given the results differ",
                                  .reports = loopsReports};

}  // namespace cutaway::cli
