#include "engine/plugins/plugin_registry.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "cutaway/words.h"
#include "engine/rewrite/operator_text.h"
#include "engine/rewrite/rule.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostPluginBytes = uint64_t{256} << 20;
constexpr size_t kMostRulesBytes = 4u << 20, kMostVersionBytes = 100;
constexpr double kMostDescribeSeconds = 10;
constexpr std::string_view kPlaces[] = {"pre_grad_custom_pass", "joint_custom_pre_pass", "joint_custom_post_pass",
                                        "post_grad_custom_pre_pass", "post_grad_custom_post_pass"};

bool isName(std::string_view text) {
    return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '_';
    });
}

std::string folderOf(const char* variable, const char* beneathHome) {
    const char* given = std::getenv(variable);
    const char* home = std::getenv("HOME");
    if (given && given[0] == '/') return given;
    return home && home[0] == '/' ? std::string(home) + beneathHome : std::string();
}

bool isPluginFile(const fs::path& path) {
    const std::string end = path.extension().string();
    return end == ".so" || end == ".py" || end == ".rules";
}

/// Why a file is not loaded, whatever is in it. A link is as safe as what it leads to.
std::string whyUnsafe(const fs::path& given) {
    std::error_code error;
    const fs::path file = fs::canonical(given, error);
    if (error) return "it cannot be read: " + error.message();
    fs::path path = file;
    for (int above = 0; path != path.parent_path() || above < 1; path = path.parent_path(), ++above) {
        struct stat facts {};
        if (::stat(path.c_str(), &facts) != 0) return "it cannot be read";
        if (above < 2 && facts.st_uid != 0 && facts.st_uid != ::geteuid())
            return path.string() + " belongs to another user: take it over (chown), then it is loaded";
        const bool sticky = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0;
        if ((facts.st_mode & S_IWOTH) != 0 && !sticky)
            return "every user may write to " + path.string() + ": take that right away (chmod o-w), then it is loaded";
    }
    return {};
}

std::string offFile() {
    const std::string folder = folderOf("XDG_CONFIG_HOME", "/.config");
    return folder.empty() ? std::string() : folder + "/cutaway/plugins-off";
}
std::set<std::string> namesOff() {
    std::set<std::string> names;
    const std::string path = offFile();
    if (path.empty() || !fs::exists(path)) return names;
    const auto text = readFile(path);
    if (!text) return names;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        if (end > 0) names.emplace(rest.substr(0, end));
        rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return names;
}

/// What is wrong with what a plugin says of itself; empty: nothing.
std::string whyMisdescribed(const PluginInfo& info) {
    if (!isName(info.name)) return "its name, '" + visibleText(info.name) + "', is not made of a-z, 0-9 and _";
    if (info.version.empty()) return "it says no version";
    if (info.version.size() > kMostVersionBytes || visibleText(info.version) != info.version)
        return "its version, '" + visibleText(info.version.substr(0, kMostVersionBytes)) +
               "', is not a few printed characters";
    std::set<std::string> seen;
    for (const PluginItem& item : info.items) {
        const std::string title = "the " + item.kind + " '" + visibleText(item.name) + "'";
        if (!isName(item.name)) return "the name of " + title + " is not made of a-z, 0-9 and _";
        if (!seen.insert(item.kind + " " + item.name).second) return title + " is there twice";
        if (item.kind == "pass" && std::find(std::begin(kPlaces), std::end(kPlaces), item.place) == std::end(kPlaces)) {
            std::string places;
            for (const std::string_view place : kPlaces) places += (places.empty() ? "" : ", ") + std::string(place);
            return title + " names no place for passes ('" + visibleText(item.place) + "'); there are: " + places;
        }
        if (item.kind == "library" && item.operators.empty()) return title + " says no operators";
        if (item.kind == "importer" && item.patterns.empty()) return title + " says no patterns of file names";
    }
    if (info.rules.size() > kMostRulesBytes) return "its rules are larger than 4 MiB";
    if (!info.rules.empty())
        if (const auto rules = loadRules(info.rules); !rules) return "its rules do not load: " + rules.error().text();
    if (info.items.empty() && info.rules.empty()) return "it gives nothing";
    return {};
}

/// Definitions of operators as rules that write them out before anything else looks at the calls; `defines`: what is
/// defined, with its parameters.
std::string rulesOfOperators(std::string_view text, std::vector<std::string>& defines) {
    std::string out;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const size_t first = line.find_first_not_of(" \t\r");
        if (first == std::string_view::npos || line[first] == '#') continue;
        if (!line.starts_with("def ")) {
            out += "    " + std::string(line.substr(first)) + "\n";
            continue;
        }
        const std::string call(line.substr(4, line.rfind(')') == std::string_view::npos ? 0 : line.rfind(')') - 3));
        defines.push_back(visibleText(call));
        std::string name = call.substr(0, call.find('('));
        std::replace(name.begin(), name.end(), '.', '_');
        out += "rule define_" + name + "\n  place pre_grad_custom_pass\n  why it is what the operator computes\n" +
               "  find\n    r_ = " + call + "\n    return r_\n  replace_by_example\n";
    }
    return out.empty() ? out : "\n" + out;
}

void readDescription(PluginInfo& info, const std::vector<std::string>& said) {
    // As serve.cpp writes it. What is missing stays empty, and is refused as such.
    const auto at = [&](size_t index) { return index < said.size() ? said[index] : std::string(); };
    info.name = at(0);
    info.version = at(1);
    info.summary = at(2);
    info.rules = at(3);
    info.startsProcesses = at(4) != "0" && !at(4).empty();
    info.rules += rulesOfOperators(at(5), info.defines);
    for (size_t i = 6; i + 6 <= said.size(); i += 6) {
        PluginItem item;
        item.kind = at(i);
        item.name = at(i + 1);
        item.summary = at(i + 2);
        if (item.kind == "pass") {
            item.place = at(i + 3);
            item.after = at(i + 4);
            item.settings = at(i + 5);
        } else if (item.kind == "importer") item.patterns = at(i + 3);
        else if (item.kind == "coloring") item.unit = at(i + 3);
        else if (item.kind == "library") item.operators = at(i + 3);
        info.items.push_back(std::move(item));
    }
}

/// A file of rules is a plugin by itself. Its comments say the rest: "# version 2", "# Some sentence".
void describeRules(PluginInfo& info, std::string text) {
    info.name = fs::path(info.file).stem().string();
    info.version = "1";
    std::string_view rest = text;
    while (rest.starts_with("#")) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        line.remove_prefix(std::min(line.find_first_not_of("# "), line.size()));
        if (line.starts_with("version ")) info.version = std::string(line.substr(8));
        else if (info.summary.empty()) info.summary = std::string(line);
    }
    info.rules = std::move(text);
}

PluginPointer load(const std::string& file, const std::string& from) {
    auto plugin = std::make_shared<Plugin>();
    PluginInfo& info = plugin->info;
    info.file = file;
    info.from = from;
    info.name = fs::path(file).stem().string();
    if (info.problem = whyUnsafe(file); !info.problem.empty()) return plugin;
    const auto opened = InputFile::open(file);
    const auto bytes = opened ? (*opened)->readAll(kMostPluginBytes) : Result<std::string>(opened.error());
    if (!bytes) {
        info.problem = bytes.error().text();
        return plugin;
    }
    info.hash = Hasher().add(std::string_view(*bytes)).finish().hex();
    if (fs::path(file).extension() == ".rules") {
        describeRules(info, *bytes);
    } else {
        plugin->process = std::make_shared<PluginProcess>(file, FileStamp::of(file));
        PluginCall call;
        call.kind = "describe";
        call.name = "cutaway_plugin()";
        call.seconds = std::min(kMostDescribeSeconds, pluginLimits().seconds);
        const auto reply = plugin->process->call(call, {});
        if (!reply) {
            info.problem = reply.error().text();
            return plugin;
        }
        readDescription(info, reply->said);
        plugin->process->letStartProcesses(info.startsProcesses);
    }
    if (const auto operators = readOperators(info.rules))
        for (const OperatorText& one : *operators) info.defines.push_back(visibleText(one.schemaText));
    if (std::string wrong = whyMisdescribed(info); !wrong.empty()) {
        info.problem = std::move(wrong);
        if (!isName(info.name)) info.name = fs::path(file).stem().string();
    }
    return plugin;
}

struct LoadedPlugin {
    FileStamp stamp;
    PluginPointer plugin;
};
std::mutex s_mutex;
/// By path and by what it is to the user: a check has a process and counts of its own.
std::map<std::pair<std::string, std::string>, LoadedPlugin>& known() {
    static std::map<std::pair<std::string, std::string>, LoadedPlugin> all;
    return all;
}

}  // namespace

PluginInfo Plugin::now() const {
    PluginInfo out = info;
    if (process) {
        PluginCounts counts = process->counts();
        if (info.from != kFromFile) counts.add(pluginUse(info.file));
        out.calls = counts.calls;
        out.faults = counts.faults;
        out.milliseconds = counts.milliseconds;
        out.lastFaults = std::move(counts.lastFaults);
    }
    return out;
}

std::string Plugin::title() const { return "plugin " + info.name + (info.version.empty() ? "" : " " + info.version); }

namespace {
std::string whyNotRead(const PluginFolder& folder) {
    // A relative path would make a plugin of what lies where the program was started, beside a model.
    if (!folder.path.starts_with("/")) return "it is not an absolute path, so nothing is loaded from there";
    std::error_code error;
    const fs::file_status status = fs::status(folder.path, error);
    const bool exists = fs::exists(status), asked = folder.from == "CUTAWAY_PLUGINS";
    if (!exists && !asked && status.type() == fs::file_type::not_found) return {};
    if (!exists) return "it cannot be read: " + error.message();
    if (fs::is_directory(status)) fs::directory_iterator(folder.path, error);
    else if (!isPluginFile(folder.path)) return "it is not a folder, and its name does not end with .so, .py or .rules";
    return error ? "it cannot be read: " + error.message() : std::string();
}
}  // namespace

std::vector<PluginFolder> pluginFolders() {
    std::vector<PluginFolder> out;
    if (const char* given = std::getenv("CUTAWAY_PLUGINS")) {
        std::string_view rest = given;
        while (!rest.empty()) {
            const size_t end = std::min(rest.find(':'), rest.size());
            if (end > 0) out.push_back({std::string(rest.substr(0, end)), "CUTAWAY_PLUGINS"});
            rest.remove_prefix(std::min(rest.size(), end + 1));
        }
    }
    if (const std::string data = folderOf("XDG_DATA_HOME", "/.local/share"); !data.empty())
        out.push_back({data + "/cutaway/plugins", "user"});
    const fs::path installed = fs::path(programPath()).parent_path().parent_path() / "lib" / "cutaway" / "plugins";
    out.push_back({installed.string(), "site"});
    if (installed != "/usr/local/lib/cutaway/plugins") out.push_back({"/usr/local/lib/cutaway/plugins", "site"});
    for (PluginFolder& folder : out) folder.problem = whyNotRead(folder);
    return out;
}

Result<PluginPointer> pluginOfFile(const std::string& file, const std::string& from) {
    struct stat facts {};
    if (::stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
        return Error{ErrorCode::NotFound, "there is no such file", file, {}};
    const std::lock_guard lock(s_mutex);
    LoadedPlugin& entry = known()[{file, from}];
    if (const FileStamp now = FileStamp::of(file); !entry.plugin || entry.stamp != now) entry = {now, load(file, from)};
    return entry.plugin;
}

std::vector<PluginPointer> allPlugins() {
    std::vector<PluginPointer> out;
    std::set<std::string> files;
    for (const PluginFolder& folder : pluginFolders()) {
        if (!folder.problem.empty()) continue;
        std::error_code error;
        std::vector<std::string> found;
        if (fs::is_directory(folder.path, error)) {
            for (fs::directory_iterator at(folder.path, error), end; !error && at != end; at.increment(error))
                if (isPluginFile(at->path())) found.push_back(at->path().string());
        } else if (isPluginFile(folder.path)) {
            found.push_back(folder.path);
        }
        std::sort(found.begin(), found.end());
        for (const std::string& file : found) {
            if (!files.insert(file).second) continue;
            if (auto plugin = pluginOfFile(file, folder.from)) out.push_back(*plugin);
        }
    }
    return out;
}

std::vector<PluginInfo> installedPlugins() {
    std::vector<PluginInfo> out;
    const std::set<std::string> off = namesOff();
    std::map<std::string, std::string> first;
    for (const PluginPointer& plugin : allPlugins()) {
        PluginInfo info = plugin->now();
        info.on = !off.contains(info.name);
        if (const auto [at, fresh] = first.emplace(info.name, info.file); !fresh && info.problem.empty())
            info.problem = "hidden by " + at->second + ", which has the same name";
        out.push_back(std::move(info));
    }
    return out;
}

Result<PluginInfo> pluginIn(const std::string& file) {
    CT_TRY(const PluginPointer plugin, pluginOfFile(fs::absolute(file).lexically_normal().string(), kFromFile));
    return plugin->now();
}

Result<void> switchPlugin(const std::string& name, bool on) {
    std::vector<std::string> names;
    for (const PluginPointer& plugin : allPlugins()) names.push_back(plugin->info.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
        return Error{ErrorCode::NotFound, "no plugin named '" + visibleText(name) + "' is installed", {}, {}};
    const std::string path = offFile();
    if (path.empty()) return Error{ErrorCode::NotFound, "HOME is not set, so settings cannot be kept", {}, {}};
    std::set<std::string> off = namesOff();
    if (on) off.erase(name);
    else off.insert(name);
    std::string text;
    for (const std::string& each : off) text += each + "\n";
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    return replaceFile(path, text);
}

Result<PluginPointer> findPlugin(const std::string& name) {
    const std::vector<PluginPointer> all = allPlugins();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each->info.name == name; });
    if (found == all.end()) {
        Error error{ErrorCode::NotFound, "no plugin named '" + visibleText(name) + "' is installed", {}, {}};
        std::vector<std::string_view> names;
        for (const PluginPointer& plugin : all) names.push_back(plugin->info.name);
        if (std::string near = suggestion(name, names); !near.empty()) error.notes.push_back(std::move(near));
        error.notes.push_back("`cutaway-cli plugin list` says which are, and where they are looked for");
        return error;
    }
    if (!(*found)->info.problem.empty())
        return Error{ErrorCode::ToolFailed, (*found)->title() + ": " + (*found)->info.problem, (*found)->info.file, {}};
    if (namesOff().contains(name))
        return Error{ErrorCode::NotFound,
                     (*found)->title() + " is switched off",
                     {},
                     {"`cutaway-cli plugin on " + name + "` switches it on"}};
    return *found;
}

Result<PluginItemRef> findItem(std::string_view kind, const std::string& name) {
    const size_t dot = name.find('.');
    CT_TRY(const PluginPointer plugin, findPlugin(name.substr(0, dot)));
    PluginItemRef out;
    std::string names;
    size_t index = 0, matches = 0;
    for (const PluginItem& item : plugin->info.items) {
        if (item.kind != kind) continue;
        names += (names.empty() ? "" : ", ") + item.name;
        if (dot == std::string::npos || name.substr(dot + 1) == item.name) {
            ++matches;
            out = {plugin, index, &item};
        }
        ++index;
    }
    if (matches == 1) return out;
    if (names.empty()) return Error{ErrorCode::NotFound, plugin->title() + " gives no " + std::string(kind), {}, {}};
    return Error{ErrorCode::NotFound,
                 matches > 1 ? plugin->title() + " gives more than one " + std::string(kind) + ", so say which"
                             : plugin->title() + " gives no " + std::string(kind) + " of that name",
                 {},
                 {"it gives: " + names}};
}

std::vector<PluginItemRef> itemsOf(std::string_view kind) {
    std::vector<PluginItemRef> out;
    const std::set<std::string> off = namesOff();
    std::set<std::string> seen;
    for (const PluginPointer& plugin : allPlugins()) {
        if (!seen.insert(plugin->info.name).second || off.contains(plugin->info.name) || !plugin->info.problem.empty())
            continue;
        size_t index = 0;
        for (const PluginItem& item : plugin->info.items)
            if (item.kind == kind) out.push_back({plugin, index++, &item});
    }
    return out;
}

Result<PluginReply> callItem(const PluginItemRef& found, std::string_view work, const Stopped& stopped,
                             std::vector<std::string> settings, double seconds, const std::string& file) {
    if (!found.plugin->process) return invalidInput(found.plugin->title() + " has rules alone");
    PluginCall call;
    call.kind = found.item->kind;
    call.index = found.index;
    call.work = work;
    call.file = file;
    call.settings = std::move(settings);
    call.seconds = seconds;
    call.name = found.plugin->title() + ", " + found.item->kind + " " + found.item->name + ":";
    return found.plugin->process->call(call, stopped);
}

}  // namespace cutaway
