// export: the compiled model as a folder that builds and runs without Cutaway.
#include "cutaway/export.h"

#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct ExportArguments {
    std::string path, json;
    ExportOptions options;
    CompileArguments compile;
};

Json jsonOf(const ExportReport& report) {
    return {{"name", report.name},
            {"folder", report.folder},
            {"library", report.library},
            {"files", report.files},
            {"bytes", report.bytes},
            {"inputs_from", report.inputsFrom},
            {"target", report.target},
            {"fixed_sizes", report.fixedSizes},
            {"check",
             {{"outcome", wordOf(report.check.outcome)},
              {"why", report.check.why},
              {"results", report.check.results},
              {"largest_error", report.check.largestError}}},
            {"compile_seconds", report.compileSeconds}};
}

Result<int> exportModel(const ExportArguments& arguments) {
    CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
    CT_TRY(const ExportReport report, exportProgram(compiled.session, compiled.run, arguments.options));
    const int status = report.check.isGood() ? 0 : 1;
    if (!arguments.json.empty()) {
        const int unwritten = writeText(arguments.json, dump(jsonOf(report)));
        return unwritten != 0 ? unwritten : status;
    }
    if (!report.fixedSizes.empty()) remark("the program accepts only the example input sizes: " + report.fixedSizes);
    print("%s: %zu files, %s, compiled in %.1f s\n", report.folder.c_str(), report.files.size(),
          bytesText(report.bytes).c_str(), report.compileSeconds);
    for (const std::string& file : report.files)
        if (file.rfind("src/", 0) != 0) std::cout << "  " << file << "\n";
    std::cout << "  src/  (the library's sources)\n";
    std::cout << "inputs: " << report.inputsFrom << "\n";
    std::cout << "build it again: " << report.command << "\n";
    std::cout << sentenceOf(report.check) << "\n";
    return status;
}

/// An option whose words are a table's; the first is the default.
void addChoice(CLI::App& command, const char* name, std::string& word, std::span<const ExportChoice> choices,
               const std::string& what) {
    std::string all;
    std::vector<std::string> words;
    for (const ExportChoice& choice : choices) {
        all += (all.empty() ? ": " : "; ") + std::string(choice.word) + ", " + std::string(choice.meaning) +
               (words.empty() ? " (the default)" : "");
        words.emplace_back(choice.word);
    }
    command.add_option(name, word, what + all)->type_name("WORD")->check(CLI::IsMember(words));
}

void addExportOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<ExportArguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option(
            "-o,--output", arguments->options.folder,
            "The folder: new, empty, or an earlier export, which is replaced; FILE.zip is an archive of it; default: "
            "one in the user's cache folder that is named after the code")
        ->type_name("DIR|FILE.zip");
    command
        .add_option("--name", arguments->options.name,
                    "Of the library and what its functions begin with; default: made from the file's name")
        ->type_name("NAME");
    command
        .add_option("--inputs", arguments->options.inputsFile,
                    "Input tensors (safetensors) that main.c runs on unless told otherwise; default: the file's sample "
                    "inputs, else random ones")
        ->type_name("FILE");
    addChoice(command, "--target", arguments->options.target, exportTargets(),
              "The processor that kernels are compiled for");
    addChoice(command, "--weights", arguments->options.weights, exportWeights(), "Where the weights are");
    command.add_flag("--debug", arguments->options.debug, "Compiles with what a debugger reads (-g)");
    arguments->options.check = true;
    command.add_flag("!--no-check", arguments->options.check,
                     "Leaves out what comes before the folder is put in place: the library is loaded and run in a "
                     "process of its own, and compared with the reference interpreter");
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(exportModel(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> exportReports() {
    return {{"--json",
             {{"name", "string: what the library's functions begin with"},
              {"folder", "string: that it was written into, or the archive"},
              {"library", "string: its path, of an archive within it"},
              {"files", Json::array({"string: a file, relative to the folder"})},
              {"bytes", "integer: of all files"},
              {"inputs_from", "string: what inputs.safetensors holds"},
              {"target", "string: the processor that kernels are compiled for"},
              {"fixed_sizes", "string: why the program takes these sizes only; empty if it takes all of the graph's"},
              {"check",
               {{"outcome", "string: agrees, differs, failed, impossible or left out"},
                {"why", "string: what differs, failed or is impossible"},
                {"results", "integer: that were compared"},
                {"largest_error", "number: absolute, of all results"}}},
              {"compile_seconds", "number: of all compilers together"}}}};
}

}  // namespace

extern const Command exportCommand{.name = "export",
                                   .summary =
                                       "Writes the compiled model as a library with header, weights and a "
                                       "main program",
                                   .add = addExportOptions,
                                   .refuses = "the written library does not run, or differs from the reference",
                                   .reports = exportReports};

}  // namespace cutaway::cli
