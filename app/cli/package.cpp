// package: what AOTInductor compiled, and which of our calls compute the same.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/packages.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct PackageArguments {
    std::string path, source, kernel, constant, model, against, json;
    CompileArguments compile;
};

std::string listed(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
}
std::string typed(const std::vector<PackagedValue>& values) {
    std::string all;
    for (const PackagedValue& value : values) all += (all.empty() ? "" : ", ") + value.name + ": " + value.type;
    return all;
}

void printPackage(const CompiledPackage& package) {
    for (const PackagedFile& file : package.files)
        print("%10s  %-18s %s\n", bytesText(file.bytes).c_str(), file.kind.c_str(), file.name.c_str());
    for (const PackagedModel& model : package.models) {
        std::cout << "model " << model.name << "\n";
        for (const auto& [key, value] : model.metadata) std::cout << "  " << key << " = " << value << "\n";
        for (const PackagedValue& input : model.inputs)
            std::cout << "  in   " << input.name << ": " << input.type << "\n";
        for (const PackagedValue& one : model.outputs) std::cout << "  out  " << one.name << ": " << one.type << "\n";
        if (!model.inSpec.empty()) std::cout << "  in_spec  " << model.inSpec << "\n";
        if (!model.outSpec.empty()) std::cout << "  out_spec " << model.outSpec << "\n";
        for (const PackagedConstant& one : model.constants)
            std::cout << "  " << (one.kind.empty() ? "constant" : one.kind) << " "
                      << (one.original.empty() ? one.name : one.original) << ": " << one.type
                      << (one.folded ? ", computed when loaded" : "") << "\n";
        for (size_t i = 0; i < model.calls.size(); ++i) {
            const PackagedCall& call = model.calls[i];
            print("%4zu  %s\n      %s\n", i + 1, call.name.c_str(), listed(call.ops).c_str());
            if (!call.reads.empty()) std::cout << "      reads  " << typed(call.reads) << "\n";
            if (!call.writes.empty()) std::cout << "      writes " << typed(call.writes) << "\n";
        }
    }
    for (const std::string& remark : package.remarks) std::cerr << "note: " << remark << "\n";
}

std::string_view word(CallMatch match) {
    switch (match) {
        case CallMatch::Same: return "same";
        case CallMatch::Part: return "part";
        case CallMatch::Theirs: return "theirs";
        case CallMatch::Ours: return "ours";
    }
    return "";
}
Json typesJson(const std::vector<PackagedValue>& values) {
    Json rows = Json::array();
    for (const PackagedValue& value : values) rows.push_back({{"name", value.name}, {"type", value.type}});
    return rows;
}
Json packageJson(const CompiledPackage& package) {
    Json files = Json::array(), models = Json::array();
    for (const PackagedFile& file : package.files)
        files.push_back({{"name", file.name}, {"kind", file.kind}, {"bytes", file.bytes}});
    for (const PackagedModel& model : package.models) {
        Json metadata = Json::object(), constants = Json::array(), calls = Json::array();
        for (const auto& [key, value] : model.metadata) metadata[key] = value;
        for (const PackagedConstant& one : model.constants)
            constants.push_back({{"name", one.original.empty() ? one.name : one.original},
                                 {"type", one.type},
                                 {"kind", one.kind},
                                 {"bytes", one.bytes},
                                 {"folded", one.folded}});
        for (const PackagedCall& call : model.calls)
            calls.push_back({{"name", call.name},
                             {"kernel", call.kernel},
                             {"ops", call.ops},
                             {"reads", typesJson(call.reads)},
                             {"writes", typesJson(call.writes)}});
        models.push_back({{"name", model.name},
                          {"metadata", metadata},
                          {"inputs", typesJson(model.inputs)},
                          {"outputs", typesJson(model.outputs)},
                          {"in_spec", model.inSpec},
                          {"out_spec", model.outSpec},
                          {"constants", constants},
                          {"calls", calls},
                          {"commands", model.commands}});
    }
    return {{"files", files}, {"models", models}, {"remarks", package.remarks}};
}

Result<int> compared(const PackageArguments& arguments, const PackagedModel& model) {
    CT_TRY(Compiled compiled, openAndCompile(arguments.against, arguments.compile));
    CT_TRY(const PackageComparison all, comparePackage(compiled.session, compiled.run, model));
    const auto theirs = [&](const CallPair& pair) {
        return pair.theirs < 0 ? std::string() : model.calls[static_cast<size_t>(pair.theirs)].name;
    };
    const auto ours = [&](const CallPair& pair) {
        if (pair.ours < 0) return std::string();
        const RunCall& call = all.ours[static_cast<size_t>(pair.ours)];
        return call.name + " (" + call.kind + ")";
    };
    if (!arguments.json.empty()) {
        Json rows = Json::array();
        for (const CallPair& pair : all.pairs)
            rows.push_back(
                {{"match", word(pair.match)}, {"theirs", theirs(pair)}, {"ours", ours(pair)}, {"why", pair.why}});
        return writeText(arguments.json, dump({{"same", all.same}, {"calls", rows}}));
    }
    size_t width = 6;
    for (const CallPair& pair : all.pairs) width = std::max(width, theirs(pair).size());
    for (const CallPair& pair : all.pairs)
        print("%-6s  %-*s  %s\n        %s\n", std::string(word(pair.match)).c_str(), static_cast<int>(width),
              theirs(pair).c_str(), ours(pair).c_str(), pair.why.c_str());
    print("%d of %zu calls of the package have one of ours that computes the same\n", all.same, model.calls.size());
    return 0;
}

Result<int> showPackage(const PackageArguments& arguments) {
    if (!arguments.model.empty() && arguments.against.empty() && arguments.constant.empty())
        return invalidInput("--model is for --against or --constant");
    if (!arguments.source.empty()) {
        CT_TRY(const std::string text, packagedText(arguments.path, arguments.source));
        std::cout << text;
        return 0;
    }
    if (!arguments.constant.empty()) {
        CT_TRY(const std::string text, packagedConstant(arguments.path, arguments.model, arguments.constant));
        std::cout << text;
        return 0;
    }
    CT_TRY(const CompiledPackage package, openPackage(arguments.path));
    if (!arguments.kernel.empty()) {
        for (const PackagedModel& model : package.models)
            for (const PackagedCall& call : model.calls)
                if (call.name == arguments.kernel && !call.source.empty()) {
                    std::cout << call.source;
                    return 0;
                }
        return Error{ErrorCode::NotFound,
                     "the package has no source of a kernel '" + arguments.kernel + "'",
                     arguments.path,
                     {"cutaway-cli package lists the calls"}};
    }
    if (!arguments.against.empty()) {
        CT_TRY(const PackagedModel* const model, modelOfPackage(package, arguments.model));
        return compared(arguments, *model);
    }
    if (!arguments.json.empty()) return writeText(arguments.json, dump(packageJson(package)));
    printPackage(package);
    return 0;
}

std::vector<JsonReport> packageReports() {
    const Json value{{"name", "string: in the code"},
                     {"type", "string: dtype and sizes; ? for what the sources do not tell"}};
    const Json file{{"name", "string: in the package"},
                    {"kind", "string: generated source, compiled library, metadata, weights, ..."},
                    {"bytes", "integer: of the file"}};
    const Json constant{{"name", "string: in the model"},
                        {"type", "string: dtype and sizes"},
                        {"kind", "string: Parameter, Buffer, ..."},
                        {"bytes", "integer: with padding"},
                        {"folded", "boolean: computed when the package is loaded"}};
    const Json call{{"name", "string: of the kernel or function"},
                    {"kernel", "boolean: generated; else a function of PyTorch"},
                    {"ops", Json::array({"string: operator of ATen that it computes"})},
                    {"reads", Json::array({value})},
                    {"writes", Json::array({value})}};
    const Json model{{"name", "string: folder below data/aotinductor"},
                     {"metadata", {{"*", "string: as the package has it"}}},
                     {"inputs", Json::array({value})},
                     {"outputs", Json::array({value})},
                     {"in_spec", "string: how arguments are nested, as PyTorch writes it; empty if not told"},
                     {"out_spec", "string: the same of results"},
                     {"constants", Json::array({constant})},
                     {"calls", Json::array({call})},
                     {"commands", Json::array({"string: of the compilers that made it"})}};
    const Json pair{{"match", "string: same, part (some operators, or other results), theirs or ours (only there)"},
                    {"theirs", "string: name of the package's call; empty if there is none"},
                    {"ours", "string: name and kind of our call; empty if there is none"},
                    {"why", "string: a sentence"}};
    return {{"--json",
             {{"files", Json::array({file})},
              {"models", Json::array({model})},
              {"remarks", Json::array({"string: what could not be read"})}}},
            {"--json --against", {{"same", "integer: calls that compute the same"}, {"calls", Json::array({pair})}}}};
}

void addPackageOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<PackageArguments>();
    command
        .add_option("PACKAGE", arguments->path,
                    "A .pt2 of torch._inductor.aoti_compile_and_package, or the folder of its files")
        ->required();
    auto* source =
        command
            .add_option("--source", arguments->source, "Prints this file of the package; the end of its name is enough")
            ->type_name("FILE");
    auto* kernel =
        command.add_option("--kernel", arguments->kernel, "Prints the source of this kernel")->type_name("NAME");
    kernel->excludes(source);
    auto* against =
        command
            .add_option("--against", arguments->against,
                        "Compiles this model, and says of each call of the package which of ours computes the same")
            ->type_name("MODEL");
    against->excludes(source)->excludes(kernel);
    command
        .add_option("--constant", arguments->constant,
                    "Prints type, range and first numbers of this constant, as they lie in the library")
        ->type_name("NAME")
        ->excludes(source)
        ->excludes(kernel)
        ->excludes(against);
    command
        .add_option("--model", arguments->model, "With --against or --constant: the model of a package with several")
        ->type_name("NAME");
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(showPackage(*arguments)); });
}

}  // namespace

extern const Command packageCommand{
    .name = "package",
    .summary =
        "What a package of AOTInductor holds: files, constants, calls and sources, and which of our calls compute the same",
    .add = addPackageOptions,
    .reports = packageReports};

}  // namespace cutaway::cli
