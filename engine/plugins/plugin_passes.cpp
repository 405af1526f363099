#include "engine/plugins/plugin_passes.h"

#include <algorithm>
#include <sstream>

#include "cutaway/words.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/user_passes.h"
#include "engine/plugins/plugin_libraries.h"
#include "engine/plugins/plugin_registry.h"
#include "engine/plugins/text_rewrites.h"

namespace cutaway {
namespace {

constexpr size_t kMostGraphGrowth = 16, kMostAddedBytes = 16u << 20;
constexpr size_t kMostNameText = 200, kMostWhyText = 4096;

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Of "key=initial value: sentence".
Settings initialSettings(const std::string& declared) {
    Settings out;
    std::istringstream lines(declared);
    for (std::string line; std::getline(lines, line);) {
        const size_t equals = line.find('=');
        if (equals == std::string::npos || equals == 0) continue;
        const size_t colon = line.find(": ", equals);
        out.emplace_back(line.substr(0, equals),
                         line.substr(equals + 1, colon == std::string::npos ? colon : colon - equals - 1));
    }
    return out;
}

bool declares(const PluginItem& pass, const std::string& key) {
    const Settings all = initialSettings(pass.settings);
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == key; });
}

/// The settings of a call: those that are given in place of the initial values.
std::vector<std::string> settingsFor(const PluginItem& pass, const Settings& given) {
    std::vector<std::string> out;
    for (const auto& [key, initial] : initialSettings(pass.settings)) {
        const auto found = std::find_if(given.begin(), given.end(), [&](const auto& one) { return one.first == key; });
        out.push_back(key + "=" + (found == given.end() ? initial : found->second));
    }
    return out;
}

std::string passName(const Plugin& plugin, const PluginItem& item) { return plugin.info.name + "." + item.name; }

/// A pass, or a library, which is one of the last stage.
bool isPassOfRun(const PluginItem& item) { return item.kind == "pass" || item.kind == "library"; }
std::string placeOf(const PluginItem& item) { return item.kind == "library" ? kLibraryPlace : item.place; }
const char* kindAt(const std::string& place) { return place == kLibraryPlace ? "library" : "pass"; }

/// What a call of a pass said.
struct PassAnswer {
    std::optional<std::string> graph;
    std::vector<NamedRewrite> rewrites;
};
Result<PassAnswer> answerOf(const std::vector<std::string>& said) {
    PassAnswer out;
    for (size_t i = 0; i < said.size();) {
        const std::string& word = said[i];
        const size_t more = word == "emit" ? 2 : word == "rewrite" ? 3 : word == "color" ? 4 : word == "say" ? 1 : 0;
        if (more == 0 || i + more >= said.size()) return invalidInput("returned bytes that are not an answer");
        if (word == "emit" && out.graph) return invalidInput("returned more than one graph");
        if (word == "emit") out.graph = said[i + 2];
        if (word == "rewrite")
            out.rewrites.push_back({said[i + 1], visibleText(said[i + 2].substr(0, kMostNameText)),
                                    visibleText(said[i + 3].substr(0, kMostWhyText))});
        i += more + 1;
    }
    return out;
}

/// Stepping into a pass runs it again on the same graph: its last answer is kept.
struct LastAnswer {
    std::mutex mutex;
    std::string text;
    std::shared_ptr<const PassAnswer> answer;
};

/// A graph so much larger than the one that it was given would take the memory of the window.
Result<void> checkSize(const PassAnswer& answer, size_t given) {
    const size_t most = kMostGraphGrowth * given + kMostAddedBytes;
    if (!answer.graph || answer.graph->size() <= most) return {};
    return Error{ErrorCode::Limit,
                 "returned a graph of " + std::to_string(answer.graph->size()) + " bytes, and may return " +
                     std::to_string(most) + " where it was given " + std::to_string(given),
                 {},
                 {}};
}

Error returnedBy(const PluginItemRef& found, Error error) {
    if (error.message.size() > kMostWhyText) error.message = error.message.substr(0, kMostWhyText) + "...";
    if (error.where.size() > kMostNameText) error.where = error.where.substr(0, kMostNameText) + "...";
    error.message = found.plugin->title() + ", pass " + found.item->name + ": " + error.message;
    return error;
}

std::function<Result<bool>(Module&, Rewriter&)> functionOf(const PluginItemRef& found, const Settings& given) {
    const auto last = std::make_shared<LastAnswer>();
    const auto settings = settingsFor(*found.item, given);
    return [found, settings, last](Module& module, Rewriter& rewriter) -> Result<bool> {
        std::string text = pluginText(module);
        std::shared_ptr<const PassAnswer> answer;
        {
            const std::lock_guard lock(last->mutex);
            if (last->answer && last->text == text) answer = last->answer;
        }
        if (!answer) {
            CT_TRY(const PluginReply reply, callItem(
                                                found, text, [&] { return rewriter.cancelled(); }, settings));
            auto read = answerOf(reply.said);
            if (auto sound = read ? checkSize(*read, text.size()) : Result<void>(); !sound)
                return returnedBy(found, sound.error());
            if (!read) return returnedBy(found, read.error());
            answer = std::make_shared<const PassAnswer>(std::move(*read));
            const std::lock_guard lock(last->mutex);
            last->text = text;
            last->answer = answer;
        }
        if (!answer->graph) return false;
        auto changed = rewriteByText(module, text, *answer->graph, rewriter, found.item->name, found.item->summary,
                                     answer->rewrites);
        if (!changed) return returnedBy(found, changed.error());
        return changed;
    };
}

/// One pass of the request, as it is written there or by its plugin's name alone, written out.
Result<void> writeOut(const PluginPass& asked, CompileRequest& out) {
    const size_t dot = asked.name.find('.');
    CT_TRY(const PluginPointer plugin, findPlugin(asked.name.substr(0, dot)));
    const PluginInfo& info = plugin->info;
    if ((!asked.version.empty() && asked.version != info.version) || (!asked.hash.empty() && asked.hash != info.hash))
        return Error{ErrorCode::NotFound,
                     "the request names plugin " + info.name + " " + visibleText(asked.version) + " (" +
                         visibleText(asked.hash) + "), and " + info.version + " (" + info.hash + ") is installed",
                     info.file,
                     {"install the one that the request names, or leave version and hash out: --plugin " + info.name}};
    std::vector<const PluginItem*> passes;  // and libraries, which are passes of the last stage
    std::string names;
    for (const PluginItem& item : info.items) {
        if (!isPassOfRun(item)) continue;
        if (!asked.place.empty() && (asked.place == kLibraryPlace) != (item.kind == "library")) continue;
        names += (names.empty() ? "" : ", ") + passName(*plugin, item);
        if (dot == std::string::npos || asked.name.substr(dot + 1) == item.name) passes.push_back(&item);
    }
    if (passes.empty() && (dot != std::string::npos || info.rules.empty()))
        return Error{
            ErrorCode::NotFound,
            plugin->title() + " gives no pass" +
                (dot == std::string::npos ? ", no library and no rules" : " named '" + visibleText(asked.name) + "'"),
            {},
            names.empty() ? std::vector<std::string>() : std::vector{"it gives: " + names}};
    for (const auto& [key, value] : asked.settings) {
        std::vector<std::string> known;
        for (const PluginItem* pass : passes)
            for (const auto& [name, initial] : initialSettings(pass->settings)) known.push_back(name);
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        Error error = invalidInput(plugin->title() + " has no setting '" + visibleText(key) + "'");
        const std::vector<std::string_view> views(known.begin(), known.end());
        if (std::string near = suggestion(key, views); !near.empty()) error.notes.push_back(std::move(near));
        return error;
    }
    for (const PluginItem* pass : passes) {
        PluginPass one{asked.place.empty() ? placeOf(*pass) : asked.place, passName(*plugin, *pass), info.version,
                       info.hash};
        for (const auto& setting : asked.settings)
            if (declares(*pass, setting.first)) one.settings.push_back(setting);
        out.plugins.push_back(std::move(one));
    }
    if (dot != std::string::npos || info.rules.empty()) return {};
    const auto there = std::find_if(out.userRules.begin(), out.userRules.end(),
                                    [&](const UserRules& rules) { return rules.name == info.name; });
    if (there == out.userRules.end()) out.userRules.push_back({info.name, info.rules, info.file});
    else if (there->text != info.rules)
        return Error{ErrorCode::InvalidInput,
                     "the request has rules named '" + info.name + "' that are not those of " + plugin->title(),
                     there->path,
                     {"give the file another name, or leave --plugin " + info.name + " out"}};
    return {};
}

}  // namespace

Result<CompileRequest> withPlugins(CompileRequest request) {
    const std::vector<PluginPass> asked = std::exchange(request.plugins, {});
    for (const PluginPass& one : asked) {
        // Functions that a program lends itself are written out already, and are not a plugin of a folder.
        if (!one.place.empty() && needsLender({.plugins = {one}})) request.plugins.push_back(one);
        else CT_TRY_VOID(writeOut(one, request));
    }
    return request;
}

std::vector<std::string> initialSettingsOf(const PluginItem& pass) { return settingsFor(pass, {}); }

bool needsLender(const CompileRequest& request) {
    return std::any_of(request.plugins.begin(), request.plugins.end(),
                       [](const PluginPass& pass) { return pass.name.find('.') == std::string::npos; });
}

Result<void> lendPlugins(const CompileRequest& request, CompileHooks& hooks) {
    for (const PluginPass& wanted : request.plugins) {
        const bool lent = std::any_of(hooks.passes.begin(), hooks.passes.end(),
                                      [&](const UserPass& pass) { return pass.id == wanted; });
        if (lent || wanted.name.find('.') == std::string::npos) continue;
        CT_TRY(const PluginItemRef found, findItem(kindAt(wanted.place), wanted.name));
        hooks.passes.push_back(
            {wanted, found.item->summary + " (" + found.plugin->title() + ")",
             wanted.place == kLibraryPlace ? libraryFunction(found) : functionOf(found, wanted.settings)});
    }
    return {};
}

Result<void> checkPluginOrder(const CompileRequest& request, const CompileHooks& hooks, const std::string& next) {
    if (request.plugins.empty()) return {};
    CT_TRY(const auto own, UserPasses::make(request, hooks));
    CT_TRY(const std::vector<PlannedPass> plan, makePlan(compiler(), request, *own, next));
    for (const PluginPass& pass : request.plugins) {
        if (pass.name.find('.') == std::string::npos) continue;
        CT_TRY(const PluginItemRef found, findItem(kindAt(pass.place), pass.name));
        const std::string name = pass.place + "." + pass.name;
        std::istringstream earlier(found.item->after);
        for (std::string first; earlier >> first;) {
            bool seen = false;
            for (const PlannedPass& planned : plan) {
                if (planned.pass->name == name) seen = true;
                else if (planned.pass->name == first && seen)
                    return invalidInput("'" + name + "' runs before '" + first + "', which it says must run earlier",
                                        found.plugin->title());
            }
        }
    }
    return {};
}

}  // namespace cutaway
