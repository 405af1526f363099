#include "app/cli/cli.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <limits>

#include "cutaway/files.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

constexpr const char* kCompiling = "Compiling";

/// On a terminal the pass that runs, once somebody would wonder: a large graph takes its time.
class ShownProgress {
  public:
    ShownProgress() {
        if (::isatty(STDERR_FILENO) != 1) return;
        m_progress.report = [this](double, const std::string& what) {
            if (std::chrono::steady_clock::now() - m_start < std::chrono::seconds(1)) return;
            std::cerr << "\r\x1b[K" << visibleText(what) << "\r" << std::flush;
            m_shown = true;
        };
    }
    ~ShownProgress() {
        if (m_shown) std::cerr << "\r\x1b[K" << std::flush;
    }
    const Progress& progress() const { return m_progress; }

  private:
    Progress m_progress;
    std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
    bool m_shown = false;
};

}  // namespace

void addJson(CLI::App& command, std::string& path) {
    command.add_option("--json", path, "Write the report as JSON to a file, or - for stdout")->type_name("FILE");
}
CLI::Option* addModel(CLI::App& command, std::string& path) {
    return command.add_option("MODEL", path,
                              "A .pt2 file, FX text, a log, a trace, a repro script or a folder of those");
}

void OpenArguments::addTo(CLI::App& command) {
    command.add_option("--graph", graph, "Of a file with several graphs: the one to open, by the name that info lists")
        ->type_name("NAME");
    command.add_option("--size", sizes, "Make a size symbol a number: --size s77=4 (may be repeated)")
        ->type_name("SYMBOL=N")
        ->allow_extra_args(false);
}
Result<OpenSettings> OpenArguments::resolved() const {
    OpenSettings settings;
    settings.graph = graph;
    for (const std::string& size : sizes) {
        const size_t equals = size.find('=');
        int64_t value = 0;
        const char* const end = size.data() + size.size();
        const auto parsed = equals == std::string::npos || equals == 0
                                ? std::from_chars_result{end, std::errc::invalid_argument}
                                : std::from_chars(size.data() + equals + 1, end, value);
        if (parsed.ec != std::errc() || parsed.ptr != end || value < 0)
            return invalidInput("--size takes SYMBOL=NUMBER, not '" + size + "'");
        if (!settings.sizes.emplace(size.substr(0, equals), value).second)
            return invalidInput("--size gives '" + size.substr(0, equals) + "' twice");
    }
    return settings;
}

void CompileArguments::addTo(CLI::App& command) {
    open.addTo(command);
    const auto compiling = [](CLI::Option* option) { return option->group(kCompiling); };
    compiling(command.add_option("--mode", mode, "inference or training"))->check(oneOf({"inference", "training"}));
    compiling(command.add_option("--device", device, "What the passes compile for; kernels are made for the CPU"))
        ->check(oneOf({"cpu", "cuda"}));
    command.add_flag("--freeze", options.freeze)->group("");  // refused with a sentence; see resolved
    compiling(command.add_flag("--parity", options.parity, "Reproduce PyTorch's behaviour where it is wrong"));
    compiling(command.add_option("--only", options.onlyStage, "Run this stage alone, on the graph as it is"))
        ->type_name("STAGE");
    compiling(command.add_flag("--all-stages", options.allStages,
                               "Run also the stages that PyTorch ran before the graph was recorded"));
    compiling(command.add_option("--disable", options.disabledPasses,
                                 "Skip a pass, or a rule by NAME or PASS/NAME (may be repeated)"))
        ->type_name("NAME")
        ->allow_extra_args(false);
    compiling(command.add_option_function<std::vector<std::string>>(
                  "--enable",
                  [this](const std::vector<std::string>& given) {
                      for (const std::string& text : given) {
                          auto pass = parseOptionalPass(text);
                          if (!pass)
                              throw CLI::ValidationError("--enable",
                                                         "'" + text + "' is not NAME or NAME=key:value,key:value");
                          options.enabledPasses.push_back(std::move(*pass));
                      }
                  },
                  "Run an optional pass: NAME or NAME=key:value,key:value (may be repeated)"))
        ->type_name("NAME")
        ->allow_extra_args(false);
    addRulesTo(command);
    compiling(command.add_option_function<std::vector<std::string>>(
                  "--move",
                  [this](const std::vector<std::string>& given) {
                      for (const std::string& text : given) {
                          auto move = parsePassMove(text);
                          if (!move)
                              throw CLI::ValidationError("--move",
                                                         "'" + text + "' is not NAME=before:OTHER or NAME=after:OTHER");
                          options.moves.push_back(std::move(*move));
                      }
                  },
                  "Run a pass elsewhere: NAME=before:OTHER or NAME=after:OTHER (may be repeated)"))
        ->type_name("NAME=...")
        ->allow_extra_args(false);
    compiling(command.add_option("--cache", options.cacheFile,
                                 "The file where measured numbers are kept from run to run; off = none (default: in "
                                 "the user's cache folder)"))
        ->type_name("FILE");
    compiling(command.add_option("--fuel", options.fuel, "Stop after this many rewrites"))
        ->type_name("N")
        ->check(wholeNumber(0, std::numeric_limits<int64_t>::max()));
}
void CompileArguments::addRulesTo(CLI::App& command) {
    command
        .add_option_function<std::vector<std::string>>(
            "--rules",
            [this](const std::vector<std::string>& paths) {
                for (const std::string& path : paths) {
                    auto text = readTextFile(path, kMaxSettingsFile);
                    if (!text) throw CLI::ValidationError("--rules", text.error().text());
                    options.userRules.push_back({std::filesystem::path(path).stem().string(), std::move(*text)});
                }
            },
            "Apply rules of your own, in the form that `rules` prints (may be repeated)")
        ->type_name("FILE")
        ->allow_extra_args(false)
        ->group(kCompiling);
}
Result<CompileOptions> CompileArguments::resolved() const {
    if (options.freeze)
        return unsupported("--freeze is not in this version: parameters stay inputs of the graph", {},
                           {"leave it out; every pass but the folding of frozen weights runs without it"});
    CompileOptions out = options;
    out.mode = mode == "training" ? Mode::Training : Mode::Inference;
    out.target = device == "cuda" ? Target::Cuda : Target::Cpu;
    return out;
}
std::string CompileArguments::given(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
        if (option->get_group() == kCompiling && option->count() > 0) return option->get_name();
    return {};
}

Result<Compiled> openAndCompile(const std::string& path, const CompileArguments& arguments) {
    Compiled compiled;
    CT_TRY(const OpenSettings settings, arguments.open.resolved());
    CT_TRY(const CompileOptions options, arguments.resolved());
    const ShownProgress shown;
    CT_TRY_VOID(compiled.session.open(path, settings, shown.progress()));
    CT_TRY(compiled.run, compiled.session.compile(options, shown.progress()));
    CT_TRY(compiled.steps, compiled.session.steps(compiled.run));
    return compiled;
}

Result<int> findStep(const std::vector<StepInfo>& steps, const std::string& name) {
    std::string all;
    std::vector<std::string_view> names;
    for (const StepInfo& step : steps) {
        if (step.name == name || std::to_string(shownNumber(step.index)) == name) return step.index;
        names.push_back(step.name);
        all += (all.empty() ? "steps: " : ", ") + step.name;
    }
    Error error{ErrorCode::NotFound, "no step named '" + name + "'", {}, {all}};
    if (std::string near = suggestion(name, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

}  // namespace cutaway::cli
