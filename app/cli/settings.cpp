// settings: the table of everything that can be set.
#include "cutaway/settings.h"

#include <iostream>
#include <sstream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "app/cli/release_report.h"
#include "app/cli/setting_words.h"
#include "cutaway/devices.h"
#include "cutaway/words.h"

namespace cutaway::cli {
std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    std::istringstream all{std::string(text)};
    for (std::string word; all >> word;) out.push_back(word);
    return out;
}

namespace {

const char* kindName(Setting::Kind kind) {
    switch (kind) {
        case Setting::Kind::Flag: return "flag";
        case Setting::Kind::Integer: return "integer";
        case Setting::Kind::Real: return "real";
        case Setting::Kind::Choice: return "choice";
        case Setting::Kind::File: return "file";
        case Setting::Kind::Name: return "name";
        case Setting::Kind::List: return "list";
    }
    return "";
}

/// Owners in the order in which settings name them; "" stands for every optional pass.
std::vector<std::string> ownersOf(const std::vector<const Setting*>& shown) {
    std::vector<std::string> out;
    for (const Setting* setting : shown)
        for (const std::string& owner : setting->owners.empty() ? std::vector<std::string>{""} : words(setting->owners))
            if (std::find(out.begin(), out.end(), owner) == out.end()) out.push_back(owner);
    return out;
}

void printSettings(const std::vector<const Setting*>& shown, const std::string& only) {
    for (const std::string& owner : ownersOf(shown)) {
        if (!only.empty() && owner != only && !owner.empty()) continue;
        const std::string heading = owner == kRequest ? "options of a compilation"
                                    : owner.empty()   ? "every optional pass"
                                                      : owner;
        std::cout << heading << "\n";
        for (const Switch& each : switches())
            if (each.name == owner) std::cout << "  " << each.what << "\n";
        for (const Setting* setting : shown) {
            const bool own =
                owner.empty() ? setting->owners.empty() : !setting->owners.empty() && setting->belongsTo(owner);
            if (!own) continue;
            const std::string key = (owner == kRequest ? "--" : "") + std::string(setting->key);
            print("  %-40s %s\n", key.c_str(), std::string(setting->what).c_str());
            print("  %-40s %s; without it: %s\n", "", setting->takes().c_str(), std::string(setting->initial).c_str());
        }
    }
}

Result<int> runSettings(const std::string& owner, const std::string& json) {
    std::vector<const Setting*> shown;
    std::vector<std::string> names;
    for (const Setting& setting : settings()) {
        for (std::string& name : words(setting.owners)) names.push_back(std::move(name));
        if (owner.empty() || setting.belongsTo(owner)) shown.push_back(&setting);
    }
    for (const Switch& each : switches()) names.emplace_back(each.name);
    if (!owner.empty() && std::find(names.begin(), names.end(), owner) == names.end()) {
        Error error{ErrorCode::NotFound, "nothing named '" + visibleText(owner) + "' has settings of its own", {}, {}};
        const std::vector<std::string_view> all(names.begin(), names.end());
        if (std::string near = suggestion(owner, all); !near.empty()) error.notes.push_back(std::move(near));
        return error;
    }
    if (json.empty()) {
        printSettings(shown, owner);
        return 0;
    }
    Json rows = Json::array();
    for (const Setting* setting : shown) {
        Json row{{"owners", words(setting->owners)}, {"key", setting->key},       {"kind", kindName(setting->kind)},
                 {"initial", setting->initial},      {"takes", setting->takes()}, {"what", setting->what}};
        if (setting->kind == Setting::Kind::Choice) row["choices"] = words(setting->choices);
        if (setting->kind == Setting::Kind::Integer || setting->kind == Setting::Kind::Real) {
            row["least"] = setting->least;
            if (setting->most < kMany) row["most"] = setting->most;
        }
        rows.push_back(std::move(row));
    }
    return writeText(json, dump(rows));
}

Result<int> showDevices(const std::string& json) {
    CT_TRY(const DevicesFound found, findDevices());
    if (json.empty()) {
        std::cout << text(found);
        return 0;
    }
    Json gpus = Json::array(), libraries = Json::array();
    for (const DevicesFound::Gpu& gpu : found.gpus) {
        gpus.push_back({{"name", gpu.name},
                        {"capability", gpu.capability / 10 + gpu.capability % 10 / 10.0},
                        {"memory_bytes", gpu.memoryBytes}});
        if (gpu.freeBytes >= 0) gpus.back()["free_bytes"] = gpu.freeBytes;
    }
    for (const DevicesFound::Part& part : found.parts) {
        libraries.push_back({{"name", part.name}});
        if (part.version.empty()) libraries.back()["missing"] = part.missing;
        else libraries.back()["version"] = part.version;
    }
    return writeText(json, dump({{"gpus", gpus}, {"libraries", libraries}}));
}

void addSettingsOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string owner, json, pytorch;
        bool device = false;
    };
    auto arguments = std::make_shared<Arguments>();
    command.add_option("OWNER", arguments->owner,
                       "Only the settings of this pass; 'compile' for the options of a compilation");
    command.add_flag(
        "--device", arguments->device,
        "In place of settings, the GPUs of this machine with their memory, and the libraries that compute on "
        "them, with their versions or what to install");
    std::vector<std::string> releases;
    for (const Release release : kReleaseList) releases.emplace_back(releaseName(release));
    command
        .add_option("--pytorch", arguments->pytorch,
                    "In place of settings, what this release of PyTorch changed, as `releases` lists it")
        ->type_name("RELEASE")
        ->check(CLI::IsMember(releases));
    addJson(command, arguments->json);
    command.callback([arguments, &context] {
        context.status = statusOf(arguments->device            ? showDevices(arguments->json)
                                  : arguments->pytorch.empty() ? runSettings(arguments->owner, arguments->json)
                                                               : showReleases(arguments->pytorch, arguments->json));
    });
}

std::vector<JsonReport> settingsReports() {
    const Json row{{"owners", Json::array({"string: a pass, or compile; none for every optional pass"})},
                   {"key", "string: name"},
                   {"kind", "string: flag, integer, real, choice, file, name or list"},
                   {"initial", "string: what holds if nothing is said"},
                   {"takes", "string: in words"},
                   {"what", "string: a sentence"},
                   {"choices?", Json::array({"string: of a choice"})},
                   {"least?", "number: of a number"},
                   {"most?", "number: of a number, if there is one"}};
    const Json gpu{{"name", "string"},
                   {"capability", "number: 9.0"},
                   {"memory_bytes", "integer: all of it"},
                   {"free_bytes?", "integer: of the first, which is used"}};
    const Json library{{"name", "string"},
                       {"version?", "string: none if it is not there"},
                       {"missing?", "string: why not, what it costs and what to install"}};
    return {{"--json", Json::array({row})},
            {"--json --device", {{"gpus", Json::array({gpu})}, {"libraries", Json::array({library})}}},
            {"--json --pytorch", releaseReports().front().shape}};
}

}  // namespace

extern const Command settingsCommand{
    .name = "settings",
    .summary =
        "Everything that can be set: options of a compilation, and settings of optional passes (--enable "
        "PASS=key:value)",
    .add = addSettingsOptions,
    .reports = settingsReports};

}  // namespace cutaway::cli
