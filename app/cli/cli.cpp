#include "app/cli/cli.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <iostream>
#include <limits>

#include "app/cli/setting_words.h"
#include "cutaway/backends.h"
#include "cutaway/graph_cache.h"
#include "cutaway/plugins.h"
#include "cutaway/settings.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// On a terminal the pass that runs, shown only if the work takes long.
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

CLI::Option* addOracle(CLI::App& command, std::string& oracle) {
    return command
        .add_option(
            "--oracle", oracle,
            "In place of --command a plugin's oracle, PLUGIN or PLUGIN.ORACLE, which says whether a graph fails")
        ->type_name("NAME");
}

void OpenArguments::addTo(CLI::App& command) {
    command.add_option("--graph", graph, "The graph to open, of a file with several, by the name that info lists")
        ->type_name("NAME");
    command.add_option("--size", sizes, "Make a size symbol a number: --size s77=4 (may be repeated)")
        ->type_name("SYMBOL=N")
        ->default_str("")
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

namespace {

/// Adds the option that the setting describes; what the user gives is appended to `words`, as in a request's text.
void addOption(CLI::App& command, const Setting& setting, std::vector<std::string>& words) {
    const std::string name = "--" + std::string(setting.key);
    const std::string what(setting.what.substr(0, setting.what.size() - 1));  // help has no full stops
    CLI::Option* option = nullptr;
    if (setting.kind == Setting::Kind::Flag) {
        option = command.add_flag_callback(
            name, [&words, name] { words.push_back(name); }, what);
    } else if (setting.kind == Setting::Kind::List) {
        option = command.add_option_function<std::vector<std::string>>(
            name,
            [&words, name](const std::vector<std::string>& given) {
                for (const std::string& value : given) words.insert(words.end(), {name, value});
            },
            what);
        option->allow_extra_args(false);
    } else {
        option = command.add_option_function<std::string>(
            name,
            [&words, name](const std::string& value) {
                words.insert(words.end(), {name, value});
            },
            what);
    }
    if (setting.kind == Setting::Kind::Choice) {
        option->check(oneOf(cli::words(setting.choices)))->default_str(std::string(setting.initial));
    } else if (setting.kind == Setting::Kind::Integer) {
        option->type_name("N")->check(wholeNumber(static_cast<int64_t>(setting.least), kNoLimit));
    } else if (setting.kind != Setting::Kind::Flag) {
        option->type_name(std::string(setting.choices));
    }
    option->group(kCompiling);
}

}  // namespace

void CompileArguments::addTo(CLI::App& command) {
    open.addTo(command);
    for (const Setting& setting : settings())
        if (setting.belongsTo(kRequest)) addOption(command, setting, words);
    command
        .add_option(
            "--cache", hooks.cacheFile,
            "The file where measured numbers are kept from run to run, with compiled kernels and graphs beside it; off = none (default: in the user's "
            "cache folder)")
        ->type_name("FILE")
        ->group(kCompiling);
}
void CompileArguments::addRulesTo(CLI::App& command) {
    for (const Setting& setting : settings())
        if (setting.belongsTo(kRequest) && (setting.key == "rules" || setting.key == "rule-text"))
            addOption(command, setting, words);
}
Result<CompileRequest> CompileArguments::resolved() const {
    CT_TRY(CompileRequest request, parseRequest(words));
    return withPlugins(std::move(request));
}
Result<Backend> CompileArguments::backend(std::string_view name) {
    CT_TRY(const Backend backend, backendNamed(name));
    if (backend == Backend::Cuda && !says("--device")) words.insert(words.end(), {"--device", "cuda"});
    return backend;
}
bool CompileArguments::says(std::string_view option) const {
    return std::find(words.begin(), words.end(), option) != words.end();
}
std::string CompileArguments::given(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
        if (option->get_group() == kCompiling && option->count() > 0) return option->get_name();
    return {};
}

Result<Compiled> openAndCompile(const std::string& path, const CompileArguments& arguments, bool toRun) {
    Compiled compiled;
    CT_TRY(const OpenSettings settings, arguments.open.resolved());
    CT_TRY(const CompileRequest request, arguments.resolved());
    const ShownProgress shown;
    CT_TRY_VOID(compiled.session.open(path, settings, shown.progress()));
    if (toRun) {
        CacheUse use;
        CT_TRY(compiled.run, compileToRun(compiled.session, request, arguments.hooks, use, shown.progress()));
        for (const std::string& sentence : use.remarks) remark(sentence);
    } else {
        CT_TRY(compiled.run, compiled.session.compile(request, arguments.hooks, shown.progress()));
    }
    CT_TRY(compiled.steps, compiled.session.steps(compiled.run));
    return compiled;
}

}  // namespace cutaway::cli
