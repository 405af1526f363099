#include "engine/plugins/plugin_calls.h"

#include <fnmatch.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "cutaway/words.h"
#include "engine/formats/safetensors.h"
#include "engine/ir/verify.h"
#include "engine/plugins/plugin_libraries.h"
#include "engine/plugins/plugin_registry.h"
#include "engine/plugins/text_functions.h"
#include "engine/support/files.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

constexpr uint64_t kMostImportedBytes = uint64_t{4} << 30;
constexpr size_t kMostSentenceBytes = 4096, kMostUnknown = 20;
constexpr std::string_view kOracleCommand = "oracle:", kJudgeCommand = "judge:";

/// Calls `visit(texts behind the word)` for each group that begins with `word`.
template <class Visit>
Result<void> forEachSaid(const PluginItemRef& found, const PluginReply& reply, std::string_view wanted, Visit&& visit) {
    const std::vector<std::string>& said = reply.said;
    for (size_t i = 0; i < said.size();) {
        const std::string& word = said[i];
        const size_t more = word == "emit" ? 2 : word == "rewrite" ? 3 : word == "color" ? 4 : word == "say" ? 1 : 0;
        if (more == 0 || i + more >= said.size())
            return Error{
                ErrorCode::ToolFailed, found.plugin->title() + ": returned bytes that are not an answer", {}, {}};
        if (word == wanted) CT_TRY_VOID(visit(&said[i + 1]));
        i += more + 1;
    }
    return {};
}

std::optional<PluginItemRef> importerOf(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    for (const PluginItemRef& found : itemsOf("importer")) {
        std::istringstream patterns(found.item->patterns);
        for (std::string pattern; patterns >> pattern;)
            if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return found;
    }
    return std::nullopt;
}

Error ofItem(const PluginItemRef& found, Error error) {
    error.message = found.plugin->title() + ", " + found.item->kind + " " + found.item->name + ": " + error.message;
    return error;
}

Result<OracleVerdict> verdictOf(const PluginItemRef& found, const PluginReply& reply, bool fails) {
    OracleVerdict verdict{fails, {}};
    CT_TRY_VOID(forEachSaid(found, reply, "say", [&](const std::string* text) -> Result<void> {
        if (verdict.sentence.empty()) verdict.sentence = visibleText(text->substr(0, kMostSentenceBytes));
        return {};
    }));
    return verdict;
}

/// Names of the nodes of a graph's text, inputs included.
Result<void> namesIn(const std::string& graph, std::set<std::string>& names) {
    CT_TRY(const FunctionTexts texts, splitFunctions(graph));
    for (const TextFunction& function : texts.functions) {
        for (const std::string_view line : function.head)
            forEachWord(line, [&](std::string_view word) { names.emplace(word); });
        for (const std::string_view line : function.body) names.emplace(definedName(line));
    }
    return {};
}

}  // namespace

std::string oracleCommand(const std::string& oracle) { return std::string(kOracleCommand) + oracle; }

std::optional<std::string> oracleOf(std::string_view command) {
    if (!command.starts_with(kOracleCommand)) return std::nullopt;
    return std::string(command.substr(kOracleCommand.size()));
}

std::string judgeCommand(const std::string& judge) { return std::string(kJudgeCommand) + judge; }

std::optional<std::string> judgeOf(std::string_view command) {
    if (!command.starts_with(kJudgeCommand)) return std::nullopt;
    return std::string(command.substr(kJudgeCommand.size()));
}

PluginJudge judgeOf(const PluginItemRef& found) { return PluginJudge(describedItem(found), found.plugin->process); }

Result<PluginJudge> findJudge(const std::string& name) {
    CT_TRY(const PluginItemRef found, findItem("judge", name));
    return judgeOf(found);
}

Result<OracleVerdict> askOracle(const std::string& oracle, const std::string& graph, double seconds,
                                const Progress& progress) {
    CT_TRY(const PluginItemRef found, findItem("oracle", oracle));
    CT_TRY(const PluginReply reply, callItem(
                                        found, graph, [&] { return progress.cancelled(); }, {}, seconds));
    return verdictOf(found, reply, reply.yes);
}

Result<Coloring> colorGraph(const std::string& coloring, const std::string& graph, const Progress& progress) {
    CT_TRY(const PluginItemRef found, findItem("coloring", coloring));
    CT_TRY(const PluginReply reply, callItem(found, graph, [&] { return progress.cancelled(); }));
    Coloring out{visibleText(found.item->unit), {}, {}};
    std::set<std::string> names;
    CT_TRY_VOID(namesIn(graph, names));
    CT_TRY_VOID(forEachSaid(found, reply, "color", [&](const std::string* text) -> Result<void> {
        NodeColor node{text[0], 0, visibleText(text[2].substr(0, 100)),
                       visibleText(text[3].substr(0, kMostSentenceBytes))};
        const std::string& digits = text[1];
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), node.number);
        if (read.ec != std::errc() || !std::isfinite(node.number))
            return ofItem(found, invalidInput("gives the node '" + visibleText(node.node) + "' no finite number"));
        if (names.contains(node.node)) out.nodes.push_back(std::move(node));
        else if (out.unknown.size() < kMostUnknown) out.unknown.push_back(visibleText(node.node.substr(0, 100)));
        return {};
    }));
    return out;
}

bool hasImporter(const std::string& path) { return importerOf(path).has_value(); }

Result<OpenedFile> importFile(const std::string& path, const Progress& progress) {
    const auto found = importerOf(path);
    if (!found) return Error{ErrorCode::NotFound, "no plugin imports files of this name", path, {}};
    CT_TRY(const auto file, InputFile::open(path));
    CT_TRY(const std::string bytes, file->readAll(kMostImportedBytes));
    CT_TRY(const PluginReply reply, callItem(
                                        *found, bytes, [&] { return progress.cancelled(); }, {}, 0,
                                        std::filesystem::path(path).filename().string()));
    OpenedFile out;
    out.path = path;
    out.description = "imported by " + found->plugin->title();
    std::optional<SafeTensors> tensors;
    std::set<std::string> names;
    CT_TRY_VOID(forEachSaid(*found, reply, "emit", [&](const std::string* text) -> Result<void> {
        const std::string name = visibleText(text[0].empty() ? "main" : text[0]);
        if (name == "tensors") {
            const auto storage = Storage::allocateUninitialized(text[1].size());
            std::memcpy(storage->data(), text[1].data(), text[1].size());
            auto read = parseSafeTensors(ByteSource(storage), "tensors");
            if (!read) return ofItem(*found, read.error());
            tensors = std::move(*read);
            return {};
        }
        if (!names.insert(name).second) return ofItem(*found, invalidInput("gives two graphs named '" + name + "'"));
        ParseOptions options;
        options.file = path;
        auto module = parseText(text[1], options);
        if (!module) return ofItem(*found, module.error());
        if (auto sound = verify(**module); !sound) return ofItem(*found, sound.error());
        (*module)->origin.format = out.description;
        OpenedGraph graph;
        graph.name = name;
        graph.module = std::move(*module);
        out.graphs.push_back(std::move(graph));
        return {};
    }));
    if (out.graphs.empty()) return ofItem(*found, invalidInput("gives no graph"));
    if (tensors)
        for (OpenedGraph& graph : out.graphs)
            for (const auto& [name, tensor] : tensors->tensors) graph.module->tensors.insert_or_assign(name, tensor);
    return out;
}

}  // namespace cutaway
