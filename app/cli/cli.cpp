#include "app/cli/cli.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cutaway/files.h"

namespace cutaway::cli {

int fail(const Error& error) {
    std::cerr << "cutaway-cli: " << error.text() << "\n";
    return 1;
}

int writeText(const std::string& path, const std::string& text) {
    if (path == "-") {
        std::cout << text;
        return 0;
    }
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return fail(Error{ErrorCode::ToolFailed, "cannot write the file", path, {}});
    return 0;
}

void OpenArguments::addTo(CLI::App& command) {
    command.add_option("--graph", graph, "Of a file with several graphs: the one to open, by the name that info lists");
    command.add_option("--size", sizes, "Make a size symbol a number: --size s77=4 (may be repeated)");
}
Result<OpenSettings> OpenArguments::resolved() const {
    OpenSettings settings;
    settings.graph = graph;
    for (const std::string& size : sizes) {
        const size_t equals = size.find('=');
        int64_t value = 0;
        const char* const end = size.data() + size.size();
        const auto parsed = equals == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                        : std::from_chars(size.data() + equals + 1, end, value);
        if (parsed.ec != std::errc() || parsed.ptr != end || value < 0) return invalidInput("--size takes SYMBOL=NUMBER, not '" + size + "'");
        settings.sizes[size.substr(0, equals)] = value;
    }
    return settings;
}

void CompileArguments::addTo(CLI::App& command) {
    open.addTo(command);
    command.add_option("--mode", mode, "inference or training")->check(CLI::IsMember({"inference", "training"}));
    command.add_option("--device", device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
    command.add_flag("--freeze", options.freeze, "Fold parameters into the graph (inference)");
    command.add_flag("--parity", options.parity, "Reproduce PyTorch's behaviour where it is wrong");
    command.add_option("--only", options.onlyStage, "Run this stage alone, on the graph as it is");
    command.add_option("--disable", options.disabledPasses, "Skip a pass, or a rule by NAME or PASS/NAME (may be repeated)")->allow_extra_args(false);
    command.add_option_function<std::vector<std::string>>(
        "--enable",
        [this](const std::vector<std::string>& given) {
            for (const std::string& text : given) {
                auto pass = parseOptionalPass(text);
                if (!pass) throw CLI::ValidationError("--enable", "'" + text + "' is not NAME or NAME=key:value,key:value");
                options.enabledPasses.push_back(std::move(*pass));
            }
        },
        "Run an optional pass: NAME or NAME=key:value,key:value (may be repeated)");
    addRulesTo(command);
    command.add_option_function<std::vector<std::string>>(
        "--move",
        [this](const std::vector<std::string>& given) {
            for (const std::string& text : given) {
                auto move = parsePassMove(text);
                if (!move) throw CLI::ValidationError("--move", "'" + text + "' is not NAME=before:OTHER or NAME=after:OTHER");
                options.moves.push_back(std::move(*move));
            }
        },
        "Run a pass elsewhere: NAME=before:OTHER or NAME=after:OTHER (may be repeated)")->allow_extra_args(false);
    command.add_option("--cache", options.cacheFile, "The file where measured numbers are kept from run to run; off = none (default: in the user's cache folder)");
    command.add_option("--fuel", options.fuel, "Stop after this many rewrites")->check(CLI::NonNegativeNumber);
}
void CompileArguments::addRulesTo(CLI::App& command) {
    command.add_option_function<std::vector<std::string>>(
        "--rules",
        [this](const std::vector<std::string>& paths) {
            for (const std::string& path : paths) {
                auto text = readTextFile(path, kMaxSettingsFile);
                if (!text) throw CLI::ValidationError("--rules", text.error().text());
                options.userRules.push_back({std::filesystem::path(path).stem().string(), std::move(*text)});
            }
        },
        "Apply rules of your own, in the form that `rules` prints (may be repeated)")->allow_extra_args(false);
}
CompileOptions CompileArguments::resolved() const {
    CompileOptions out = options;
    out.mode = mode == "training" ? Mode::Training : Mode::Inference;
    out.target = device == "cuda" ? Target::Cuda : Target::Cpu;
    return out;
}

Result<Compiled> openAndCompile(const std::string& path, const CompileArguments& arguments) {
    Compiled compiled;
    CT_TRY(const OpenSettings settings, arguments.open.resolved());
    CT_TRY_VOID(compiled.session.open(path, settings));
    CT_TRY(compiled.run, compiled.session.compile(arguments.resolved()));
    CT_TRY(compiled.steps, compiled.session.steps(compiled.run));
    return compiled;
}

Result<int> findStep(const std::vector<StepInfo>& steps, const std::string& name) {
    std::string names;
    for (const StepInfo& step : steps) {
        if (step.name == name || std::to_string(step.index) == name) return step.index;
        names += (names.empty() ? "" : ", ") + step.name;
    }
    return Error{ErrorCode::NotFound, "no step named '" + name + "'", {}, {"steps: " + names}};
}

}  // namespace cutaway::cli
