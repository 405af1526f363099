#pragma once
// Plugins: libraries, Python files and files of rules that users add (plugins/cutaway_plugin.h). They lie in a few
// folders that the user or the site has made for them, and are called in child processes with limits.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/request.h"
#include "cutaway/result.h"
#include "cutaway/snapshot.h"

namespace cutaway {

/// One thing that a plugin gives.
struct PluginItem {
    std::string kind;  // "pass", "importer", "oracle", "coloring", "judge", "library"
    std::string name, summary;
    std::string place;      // of a pass
    std::string after;      // of a pass: what must run earlier
    std::string settings;   // of a pass: "key=initial value: sentence", a line each
    std::string patterns;   // of an importer
    std::string unit;       // of a colouring
    std::string operators;  // of a library: full names, with spaces between
};
/// What went wrong in a call.
struct PluginFault {
    int64_t milliseconds = 0;  // when, since 1970
    std::string sentence;
};
struct PluginInfo {
    std::string file, from;  // its path; "CUTAWAY_PLUGINS", "user" or "site"
    std::string name, version, summary;
    std::string hash;  // of the file
    std::string rules;
    std::vector<std::string> defines;  // schemas of operators, or their names with parameters
    std::vector<PluginItem> items;
    bool startsProcesses = false;
    bool on = true;
    std::string problem;  // why it cannot be used; empty if it can
    // Since this program began, in its workers, too:
    int calls = 0, faults = 0;
    double milliseconds = 0;
    std::vector<PluginFault> lastFaults;  // from the earliest on
};

/// Of one call, but for oracles, whose time is the search's.
struct PluginLimits {
    double seconds = 30;                       // the variable CUTAWAY_PLUGIN_SECONDS says another
    int64_t memoryBytes = int64_t{4} << 30;    // beside what the empty process takes
    int64_t fileBytes = int64_t{64} << 20;     // of each file that it writes; eight times that of all together
    int64_t resultBytes = int64_t{256} << 20;  // of what it returns
    int64_t processes = 64;                    // at a time, of one that may start them
};
PluginLimits pluginLimits();
/// For all calls from now on.
void setPluginLimits(const PluginLimits& limits);

/// The folders in which plugins are looked for, in this order, and what each is. Of two plugins of one name the first
/// counts. CUTAWAY_PLUGINS names folders and files, with ":" between; only absolute paths.
struct PluginFolder {
    std::string path, from;
    std::string problem = {};  // why nothing is loaded from there; a user's or site's folder need not be there
};
std::vector<PluginFolder> pluginFolders();

/// All that lie there, in that order. Each is asked what it gives, in its own process.
std::vector<PluginInfo> installedPlugins();
/// The one in a file, wherever that is: for `plugin check`. Nothing is installed by it.
Result<PluginInfo> pluginIn(const std::string& file);

/// A plugin that is off is not used. Kept for later programs, in the user's folder for settings. Errors: no plugin has
/// this name; the disk.
Result<void> switchPlugin(const std::string& name, bool on);

/// The request with everything that it says of plugins written out: place, version and hash of each pass and of each
/// library, whose place is "library"; their rules as rules of the request. Errors: a plugin that is not installed, is
/// off, cannot be used, or is another version; a setting that a pass does not have.
Result<CompileRequest> withPlugins(CompileRequest request);

/// What an oracle, "PLUGIN" or "PLUGIN.ORACLE", says of a graph.
struct OracleVerdict {
    bool fails = false;
    std::string sentence;
};
Result<OracleVerdict> askOracle(const std::string& oracle, const std::string& graph, double seconds,
                                const Progress& progress = {});

/// A plugin's judge of numbers, for the command of bisect's and minify's options where the check is Numbers:
/// "judge:NAME".
std::string judgeCommand(const std::string& judge);
std::optional<std::string> judgeOf(std::string_view command);

/// A plugin's oracle in place of a command that minify and bisect ask (MinifyOptions::command): "oracle:NAME".
std::string oracleCommand(const std::string& oracle);
/// The oracle's name; nullopt for any other command.
std::optional<std::string> oracleOf(std::string_view command);

/// What a colouring says of the nodes of a graph, in its order.
struct NodeColor {
    std::string node;
    double number = 0;
    std::string kind;  // not empty: a class in place of the number
    std::string why;
};
struct Coloring {
    std::string unit;
    std::vector<NodeColor> nodes;
    std::vector<std::string> unknown;  // names of which the graph has no node; the first twenty
};
Result<Coloring> colorGraph(const std::string& coloring, const std::string& graph, const Progress& progress = {});

/// What `plugin check` tries, in running order.
struct PluginTrial {
    std::string item;     // "pass fuse_addcmul", or "" of the plugin as a whole
    std::string what;     // "gives the same answer twice"
    std::string problem;  // empty: it does
};
/// Holds the plugin in a file to the contract, on graphs of every kind: what it returns is verified, twice the same,
/// and changes nothing when it comes back; numbers are kept; time and memory stay small.
Result<std::vector<PluginTrial>> checkPlugin(const std::string& file, const Progress& progress = {});

}  // namespace cutaway
