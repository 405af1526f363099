// compile-op: one operator, ahead of time, into a cache that outlives the program.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/operators.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct CompileOpArguments {
    OperatorOptions options;
    OperatorRunOptions run;
    std::string device = "cpu", json;
};

Json jsonOf(const OperatorEntry& entry) {
    return {{"operator", entry.op},
            {"device", entry.device},
            {"inputs", entry.inputs},
            {"library", entry.library},
            {"bytes", entry.bytes}};
}

Result<int> compileOp(CompileOpArguments& arguments) {
    arguments.options.device = arguments.device == "cuda" ? Target::Cuda : Target::Cpu;
    CT_TRY(const CompiledOperator made, compileOperator(arguments.options));
    for (const std::string& sentence : made.remarks) remark(sentence);
    std::optional<RunReport> run;
    if (arguments.run.compare || arguments.run.repeat > 1) {
        arguments.run.inputsFile = arguments.options.inputsFile;
        CT_TRY(run, runOperator(made.entry, arguments.run));
    }
    if (!arguments.json.empty()) {
        Json json = jsonOf(made.entry);
        json["found"] = made.found;
        json["compile_seconds"] = made.compileSeconds;
        json["remarks"] = made.remarks;
        if (run) json["run"] = toJson(*run);
        const int written = writeText(arguments.json, dump(json));
        if (written != 0) return written;
    } else {
        std::string inputs;
        for (const std::string& input : made.entry.inputs) inputs += (inputs.empty() ? "" : ", ") + input;
        print("%s(%s) for %s: ", made.entry.op.c_str(), inputs.c_str(), made.entry.device.c_str());
        if (made.found) print("found in the cache, %s\n", bytesText(made.entry.bytes).c_str());
        else print("compiled in %.1f s, %s\n", made.compileSeconds, bytesText(made.entry.bytes).c_str());
        std::cout << made.entry.library << "\n";
        if (run) printRun(*run);
    }
    if (run && !run->matches)
        return invalidInput("the library's results differ from the interpreter's", made.entry.library);
    return 0;
}

void addCompileOpOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<CompileOpArguments>();
    command.add_option("OPERATOR", arguments->options.op, "As PyTorch names it: aten::add.Tensor")
        ->required()
        ->type_name("NAMESPACE::OP.OVERLOAD");
    command
        .add_option("--inputs", arguments->options.inputsFile,
                    "The call's tensors (safetensors) by the names of their parameters, those of a list as tensors.0, "
                    "tensors.1")
        ->type_name("FILE");
    command
        .add_option("--arg", arguments->options.arguments,
                    "Arguments in their order, or as name=VALUE: a tensor as its type ('f32[2, 3]', with strides "
                    "'f32[2, 3][1, 2]'), a list of tensors ('[f32[2], f32[3]]'), or a literal as Python writes it")
        ->type_name("VALUE")
        ->expected(1, 64)
        ->allow_extra_args(false);  // else CLI11 takes a value in brackets apart
    command.add_option("--device", arguments->device, "What to compile for")->check(oneOf({"cpu", "cuda"}));
    command
        .add_option("--cache", arguments->options.cache,
                    "The folder of the cache; default: the user's own, ~/.cache/cutaway")
        ->type_name("DIR");
    command.add_flag("--check", arguments->run.compare,
                     "Run the library and compare it with the interpreter; status 1 where they differ");
    command.add_option("--repeat", arguments->run.repeat, "Run and time it so often")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats));
    addJson(command, arguments->json);
    command.callback([arguments, &context] { context.status = statusOf(compileOp(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> compileOpReports() {
    const Json shape{{"operator", "string: with its namespace"},
                     {"device", "string: that it was compiled for"},
                     {"inputs", Json::array({"string: a type or a literal; what has its default is left out"})},
                     {"library", "string: its path"},
                     {"bytes", "integer: of the whole entry"},
                     {"found", "boolean: it was in the cache"},
                     {"compile_seconds", "number: of all compilers together; 0 if it was found"},
                     {"remarks", Json::array({"string: what is wrong with the cache"})}};
    Json run = shape;
    run["run"] = shapeOfRun();
    return {{"--json", shape}, {"--json --check", run}};
}

}  // namespace

extern const Command compileOpCommand{.name = "compile-op",
                                      .summary = "Compiles one operator into a cache, where later programs find it",
                                      .add = addCompileOpOptions,
                                      .refuses = "with --check: the library's results differ from the interpreter's",
                                      .reports = compileOpReports};

}  // namespace cutaway::cli
