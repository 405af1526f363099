#include "cutaway/request.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cutaway/files.h"
#include "cutaway/settings.h"
#include "cutaway/words.h"
#include "engine/support/hash.h"
#include "engine/support/shell_words.h"

namespace cutaway {

double OptionalPass::number(const std::string& key, double fallback) const {
    for (const auto& [setting, value] : settings) {
        if (setting != key) continue;
        double number = fallback;
        const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
        return status == std::errc() && end == value.data() + value.size() ? number : fallback;
    }
    return fallback;
}
bool OptionalPass::flag(const std::string& key, bool fallback) const {
    for (const auto& [setting, value] : settings)
        if (setting == key) return value == "1" || value == "true" || value == "True";
    return fallback;
}

namespace {

constexpr std::string_view kPassMarks = "=:,";

/// Names of rules in requests that version 0.1 has written, and those of today.
constexpr std::pair<std::string_view, std::string_view> kOldRules[] = {{"write_over", "in_place"}};

std::string ruleToday(const std::string& name) {
    const size_t slash = name.find('/');
    const std::string pass = slash == std::string::npos ? std::string() : name.substr(0, slash + 1);
    for (const auto& [old, today] : kOldRules)
        if (name.substr(pass.size()) == old) return pass + std::string(today);
    return name;
}

std::string textOf(const OptionalPass& pass) {
    std::string out = escaped(pass.name, kPassMarks);
    char before = '=';
    for (const auto& [key, value] : pass.settings) {
        out += std::exchange(before, ',') + escaped(key, kPassMarks) + ":" + escaped(value, ",");
    }
    return out;
}
std::string textOf(const PassMove& move) {
    return escaped(move.pass, kPassMarks) + (move.before ? "=before:" : "=after:") + escaped(move.anchor, kPassMarks);
}
/// ":key=value,key=value", or nothing.
std::string settingsText(const std::vector<std::pair<std::string, std::string>>& settings) {
    std::string out;
    for (const auto& [key, value] : settings)
        out += (out.empty() ? ":" : ",") + escaped(key, ":=,") + "=" + escaped(value, ":=,");
    return out;
}
std::string textOf(const PluginPass& plugin) {
    return escaped(plugin.place, ":") + ":" + escaped(plugin.name, ":") + ":" + escaped(plugin.version, ":") + ":" +
           escaped(plugin.hash, ":") + settingsText(plugin.settings);
}

}  // namespace

std::optional<PassMove> parsePassMove(const std::string& text) {
    const size_t equals = findPlain(text, '='),
                 colon = equals == std::string::npos ? equals : findPlain(text, ':', equals);
    if (equals == 0 || equals == std::string::npos || colon == std::string::npos || colon + 1 == text.size())
        return std::nullopt;
    const std::string side = text.substr(equals + 1, colon - equals - 1);
    if (side != "before" && side != "after") return std::nullopt;
    return PassMove{unescaped(text.substr(0, equals)), side == "before", unescaped(text.substr(colon + 1))};
}

std::optional<OptionalPass> parseOptionalPass(const std::string& text) {
    OptionalPass pass;
    const size_t equals = findPlain(text, '=');
    pass.name = unescaped(std::string_view(text).substr(0, equals));
    if (pass.name.empty()) return std::nullopt;
    if (equals == std::string::npos) return pass;
    for (const std::string_view one : splitPlain(std::string_view(text).substr(equals + 1), ',')) {
        const size_t colon = findPlain(one, ':');
        if (colon == std::string_view::npos || colon == 0) return std::nullopt;
        pass.settings.emplace_back(unescaped(one.substr(0, colon)), unescaped(one.substr(colon + 1)));
    }
    return pass;
}

const OptionalPass* CompileRequest::enabled(std::string_view name) const {
    const auto found = std::find_if(enabledPasses.begin(), enabledPasses.end(),
                                    [&](const OptionalPass& pass) { return pass.name == name; });
    return found == enabledPasses.end() ? nullptr : &*found;
}

namespace {

Error misshapen(std::string_view option, const std::string& value, std::string_view form) {
    return invalidInput("--" + std::string(option) + " takes " + std::string(form) + ", not '" + visibleText(value) +
                        "'");
}

Result<void> addRules(CompileRequest& request, const std::string& path) {
    CT_TRY(std::string text, readTextFile(path, kMaxSettingsFile));
    request.userRules.push_back({std::filesystem::path(path).stem().string(), std::move(text), path});
    return {};
}

/// One option of the command line, and what it is in a request.
struct Option {
    std::string_view key;
    Result<void> (*read)(CompileRequest& request, const std::string& value);
    /// The option's values in this request: one for each time that it would be given, none if it has its initial value.
    std::vector<std::string> (*write)(const CompileRequest& request);
};

template <bool CompileRequest::*Member>
Result<void> readFlag(CompileRequest& request, const std::string&) {
    request.*Member = true;
    return {};
}
template <bool CompileRequest::*Member>
std::vector<std::string> writeFlag(const CompileRequest& request) {
    return request.*Member ? std::vector<std::string>{""} : std::vector<std::string>();
}
template <auto Member>
std::vector<std::string> writeTexts(const CompileRequest& request) {
    std::vector<std::string> out;
    for (const auto& one : request.*Member) out.push_back(textOf(one));
    return out;
}
std::vector<std::string> unless(bool usual, const std::string& value) {
    return usual ? std::vector<std::string>() : std::vector{value};
}

Result<void> readFuel(CompileRequest& request, const std::string& value) {
    int64_t fuel = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), fuel);
    if (status != std::errc() || end != value.data() + value.size() || fuel < 0)
        return misshapen("fuel", value, "a whole number from 0 on");
    request.fuel = fuel;
    return {};
}
Result<void> readMemoryBudget(CompileRequest& request, const std::string& value) {
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), request.memoryBudget);
    if (status != std::errc() || end != value.data() + value.size() || !(request.memoryBudget >= 0) ||
        request.memoryBudget > 1)
        return misshapen("memory-budget", value,
                         "a number from 0 (saves the inputs alone) to 1 (the fastest backward)");
    return {};
}
std::string shortest(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
Result<void> readEnable(CompileRequest& request, const std::string& value) {
    auto pass = parseOptionalPass(value);
    if (!pass) return misshapen("enable", value, "NAME or NAME=key:value,key:value");
    request.enabledPasses.push_back(std::move(*pass));
    return {};
}
Result<void> readMove(CompileRequest& request, const std::string& value) {
    auto move = parsePassMove(value);
    if (!move) return misshapen("move", value, "NAME=before:OTHER or NAME=after:OTHER");
    request.moves.push_back(std::move(*move));
    return {};
}
Result<void> readRuleText(CompileRequest& request, const std::string& value) {
    const size_t colon = findPlain(value, ':');
    if (colon == std::string::npos || colon == 0) return misshapen("rule-text", value, "NAME:TEXT");
    request.userRules.push_back({unescaped(value.substr(0, colon)), value.substr(colon + 1)});
    return {};
}
constexpr std::string_view kPluginForm = "NAME, NAME:key=value,key=value or PLACE:NAME:VERSION:HASH";
Result<void> readPlugin(CompileRequest& request, const std::string& value) {
    const auto parts = splitPlain(value, ':');
    const bool isShort = parts.size() <= 2;
    PluginPass plugin;
    if (isShort) plugin.name = unescaped(parts[0]);
    else if (parts.size() == 4 || parts.size() == 5)
        plugin = {unescaped(parts[0]), unescaped(parts[1]), unescaped(parts[2]), unescaped(parts[3])};
    bool sound = !plugin.name.empty();
    if (parts.size() == (isShort ? 2 : 5))
        for (const std::string_view one : splitPlain(parts.back(), ',')) {
            const size_t equals = findPlain(one, '=');
            sound = sound && equals != std::string_view::npos && equals > 0;
            if (sound)
                plugin.settings.emplace_back(unescaped(one.substr(0, equals)), unescaped(one.substr(equals + 1)));
        }
    if (!sound) return misshapen("plugin", value, kPluginForm);
    request.plugins.push_back(std::move(plugin));
    return {};
}

const Option kOptions[] = {
    {"mode",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.mode = modeOf(value).value_or(Mode::Inference);
         return {};
     },
     [](const CompileRequest& request) {
         return unless(request.mode == Mode::Inference, std::string(modeName(request.mode)));
     }},
    {"strict", readFlag<&CompileRequest::strict>, writeFlag<&CompileRequest::strict>},
    {"device",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.target = value == "cuda" ? Target::Cuda : Target::Cpu;
         return {};
     },
     [](const CompileRequest& request) { return unless(request.target == Target::Cpu, "cuda"); }},
    {"tf32",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         for (const Tf32 one : {Tf32::None, Tf32::Conv, Tf32::All})
             if (tf32Name(one) == value) request.tf32 = one;
         return {};
     },
     [](const CompileRequest& request) {
         return unless(request.tf32 == Tf32::Conv, std::string(tf32Name(request.tf32)));
     }},
    {"freeze", readFlag<&CompileRequest::freeze>, writeFlag<&CompileRequest::freeze>},
    {"parity", readFlag<&CompileRequest::parity>, writeFlag<&CompileRequest::parity>},
    {"pytorch",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.pytorch = releaseOf(value).value_or(kDefaultRelease);
         return {};
     },
     [](const CompileRequest& request) {
         return unless(request.pytorch == kDefaultRelease, std::string(releaseName(request.pytorch)));
     }},
    {"only",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.onlyStage = value;
         return {};
     },
     [](const CompileRequest& request) { return unless(request.onlyStage.empty(), request.onlyStage); }},
    {"all-stages", readFlag<&CompileRequest::allStages>, writeFlag<&CompileRequest::allStages>},
    {"passes-only", readFlag<&CompileRequest::passesOnly>, writeFlag<&CompileRequest::passesOnly>},
    {"disable",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.disabledPasses.push_back(ruleToday(value));
         return {};
     },
     [](const CompileRequest& request) { return request.disabledPasses; }},
    {"enable", readEnable, writeTexts<&CompileRequest::enabledPasses>},
    {"rules", addRules, [](const CompileRequest&) { return std::vector<std::string>(); }},
    {"rule-text", readRuleText,
     [](const CompileRequest& request) {
         std::vector<std::string> out;
         for (const UserRules& rules : request.userRules) out.push_back(escaped(rules.name, ":") + ":" + rules.text);
         return out;
     }},
    {"plugin", readPlugin, writeTexts<&CompileRequest::plugins>},
    {"move", readMove, writeTexts<&CompileRequest::moves>},
    {"grad",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.gradients.push_back(value);
         return {};
     },
     [](const CompileRequest& request) { return request.gradients; }},
    {"memory-budget", readMemoryBudget,
     [](const CompileRequest& request) { return unless(request.memoryBudget == 1, shortest(request.memoryBudget)); }},
    {"solver",
     [](CompileRequest& request, const std::string& value) -> Result<void> {
         request.solver = value;
         return {};
     },
     [](const CompileRequest& request) { return unless(request.solver == "dp", request.solver); }},
    {"fuel", readFuel,
     [](const CompileRequest& request) {
         return request.fuel ? std::vector{std::to_string(*request.fuel)} : std::vector<std::string>();
     }},
};

const Setting* settingOf(std::string_view key) {
    const auto all = settings();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Setting& setting) {
        return setting.belongsTo(kRequest) && setting.key == key;
    });
    return found == all.end() ? nullptr : &*found;
}

Error noOption(const std::string& word) {
    Error error = invalidInput("no option '" + visibleText(word) + "' of a compilation");
    std::vector<std::string> names;
    for (const Option& option : kOptions) names.push_back("--" + std::string(option.key));
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (std::string near = suggestion(word, views); !near.empty()) error.notes.push_back(std::move(near));
    return error;
}

}  // namespace

std::string_view modeName(Mode mode) {
    switch (mode) {
        case Mode::Inference: return "inference";
        case Mode::Training: return "training";
        case Mode::Jvp: return "jvp";
    }
    return {};
}

std::string_view tf32Name(Tf32 tf32) {
    switch (tf32) {
        case Tf32::None: return "none";
        case Tf32::Conv: return "conv";
        case Tf32::All: return "all";
    }
    return {};
}

std::optional<Mode> modeOf(std::string_view name) {
    for (const Mode mode : kModes)
        if (modeName(mode) == name) return mode;
    return std::nullopt;
}

std::vector<std::string> valuesOf(const CompileRequest& request, std::string_view option) {
    const auto found =
        std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& one) { return one.key == option; });
    return found == std::end(kOptions) ? std::vector<std::string>() : found->write(request);
}

std::string CompileRequest::text() const {
    std::string out;
    for (const Option& option : kOptions)
        for (const std::string& value : option.write(*this)) {
            out += (out.empty() ? "--" : " --") + std::string(option.key);
            if (settingOf(option.key)->kind != Setting::Kind::Flag) out += " " + shellWord(value);
        }
    return out;
}

uint64_t CompileRequest::hash() const { return Hasher().add(text()).finish().low; }

Result<CompileRequest> parseRequest(std::string_view text) {
    CT_TRY(const std::vector<std::string> words, shellWords(text));
    return parseRequest(words);
}

Result<CompileRequest> parseRequest(std::span<const std::string> words) {
    CompileRequest request;
    for (size_t i = 0; i < words.size(); ++i) {
        const auto option = std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& one) {
            return words[i].starts_with("--") && words[i].substr(2) == one.key;
        });
        if (option == std::end(kOptions)) return noOption(words[i]);
        const Setting& setting = *settingOf(option->key);
        if (setting.kind == Setting::Kind::Flag) {
            CT_TRY_VOID(option->read(request, {}));
            continue;
        }
        if (++i == words.size()) return invalidInput("--" + std::string(option->key) + " takes " + setting.takes());
        if (!setting.fits(words[i])) return misshapen(option->key, words[i], setting.takes());
        CT_TRY_VOID(option->read(request, words[i]));
    }
    CT_TRY_VOID(checkRequest(request));
    return request;
}

std::vector<CompileRequest> kindsOfRun() {
    std::vector<CompileRequest> kinds;
    for (const Mode mode : kModes) kinds.emplace_back().mode = mode;
    kinds.emplace_back().freeze = true;
    return kinds;
}

Result<void> checkRequest(const CompileRequest& request) {
    if (request.freeze && request.mode == Mode::Training)
        return invalidInput("--freeze makes parameters constants, and --mode training asks for their gradients");
    if (!request.gradients.empty() && request.mode == Mode::Inference)
        return invalidInput(
            "--grad asks for gradients, which --mode training computes, or for tangents, as --mode jvp does");
    if (request.freeze && request.mode == Mode::Jvp)
        return invalidInput("--freeze makes parameters constants, and --mode jvp moves along them");
    if (request.strict && request.mode != Mode::Jvp)
        return invalidInput("--strict is about the results of --mode jvp: give both");
    if (request.allStages && !request.onlyStage.empty())
        return invalidInput("--only runs one stage, and --all-stages all of them");
    for (const std::string& name : request.disabledPasses)
        if (request.enabled(name))
            return invalidInput("'" + visibleText(name) + "' is switched on and off: give --enable or --disable");
    return {};
}

}  // namespace cutaway
