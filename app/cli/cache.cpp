// cache: compiled graphs that are kept, what they take, and why one is not found.
#include <ctime>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/graph_cache.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct CacheArguments {
    std::string action, path, json;
    int64_t limit = -1;
    CompileArguments compile;
};

std::string timeText(int64_t seconds) {
    if (seconds <= 0) return "-";
    const auto time = static_cast<std::time_t>(seconds);
    std::tm local{};
    localtime_r(&time, &local);
    char text[32] = {};
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

Result<int> listCache(const CacheArguments& arguments, bool verify) {
    CT_TRY(const CachedGraphs all, cachedGraphs(arguments.compile.hooks.cacheFile, verify));
    for (const std::string& sentence : all.remarks) remark(sentence);
    int damaged = 0;
    Json entries = Json::array();
    for (const CachedGraph& graph : all.entries) {
        damaged += !graph.problem.empty();
        entries.push_back({{"key", graph.key},
                           {"model", graph.model},
                           {"request", graph.request},
                           {"bytes", graph.bytes},
                           {"hits", graph.hits},
                           {"made", graph.made},
                           {"used", graph.used},
                           {"problem", graph.problem}});
        if (!arguments.json.empty()) continue;
        print("%.12s  %10s  %5lld hits  %s  %s %s\n", graph.key.c_str(), bytesText(graph.bytes).c_str(),
              static_cast<long long>(graph.hits), timeText(graph.used).c_str(), graph.model.c_str(),
              graph.request.c_str());
        if (!graph.problem.empty()) print("    %s%s\n", graph.problem.c_str(), verify ? "; it is removed" : "");
    }
    const Json json{{"entries", entries}, {"bytes", all.bytes}, {"limit_bytes", all.limit}};
    if (!arguments.json.empty()) {
        if (const int written = writeText(arguments.json, dump(json)); written != 0) return written;
    } else {
        print("%zu compiled graphs, %s of %s\n", all.entries.size(), bytesText(all.bytes).c_str(),
              bytesText(all.limit).c_str());
    }
    if (verify && damaged > 0)
        return invalidInput(std::to_string(damaged) + " of the entries were damaged, and are removed", "");
    return 0;
}

Result<int> why(const CacheArguments& arguments) {
    CT_TRY(const OpenSettings settings, arguments.compile.open.resolved());
    CT_TRY(const CompileRequest request, arguments.compile.resolved());
    Session session;
    CT_TRY_VOID(session.open(arguments.path, settings));
    CT_TRY(const CacheUse use, whyCached(session, request, arguments.compile.hooks));
    if (!arguments.json.empty())
        return writeText(arguments.json, dump({{"key", use.key}, {"found", use.found}, {"why", use.why}}));
    if (use.found) print("it is in the cache: %s\n", use.key.c_str());
    else if (use.key.empty()) print("it is not kept: %s\n", use.why.c_str());
    else print("it is not in the cache: %s\n", use.why.c_str());
    return 0;
}

Result<int> clear(const CacheArguments& arguments) {
    CT_TRY(const int removed, clearGraphs(arguments.compile.hooks.cacheFile));
    print("%d compiled graphs are removed\n", removed);
    return 0;
}

Result<int> act(const CacheArguments& arguments) {
    if (arguments.limit >= 0) CT_TRY_VOID(limitGraphs(arguments.compile.hooks.cacheFile, arguments.limit));
    if (arguments.action == "why") {
        if (arguments.path.empty()) return invalidInput("cache why needs a model", "");
        return why(arguments);
    }
    if (!arguments.path.empty()) return invalidInput("only cache why takes a model", arguments.path);
    if (!arguments.json.empty() && arguments.action == "clear")
        return invalidInput("cache clear has no report for --json", "");
    return arguments.action == "clear" ? clear(arguments) : listCache(arguments, arguments.action == "verify");
}

void addCacheOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<CacheArguments>();
    command
        .add_option("ACTION", arguments->action,
                    "list: the compiled graphs that are kept, the latest used first. why: whether the compile of MODEL "
                    "is found, and if not, what is another than in the nearest entry. clear: removes all. verify: "
                    "reads every byte, and removes what is damaged or half made")
        ->required()
        ->check(oneOf({"list", "why", "clear", "verify"}));
    addModel(command, arguments->path);
    command
        .add_option("--limit", arguments->limit,
                    "How many bytes they may take together from now on; 0 keeps none (2147483648 until it is set)")
        ->type_name("BYTES")
        ->check(wholeNumber(0, int64_t{1} << 50));
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(act(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> cacheReports() {
    const Json list{{"entries", Json::array({Json{{"key", "string: the digest of all that it depends on"},
                                                  {"model", "string: the file's name"},
                                                  {"request", "string: options that ask for it"},
                                                  {"bytes", "integer: of its files"},
                                                  {"hits", "integer: compiles that found it"},
                                                  {"made", "integer: seconds since 1970"},
                                                  {"used", "integer: seconds since 1970"},
                                                  {"problem", "string: what is damaged; empty for nothing"}}})},
                    {"bytes", "integer: of all"},
                    {"limit_bytes", "integer: above it the entries go that nobody has used for longest"}};
    const Json whyShape{{"key", "string: of the compile; empty if such ones are not kept"},
                        {"found", "boolean: it is in the cache"},
                        {"why", "string: it is not, and which ingredient is another; empty if it is"}};
    return {{"--json", list}, {"--json MODEL", whyShape}};
}

}  // namespace

extern const Command cacheCommand{.name = "cache",
                                  .summary = "Lists, explains, checks and clears the compiled graphs that are kept",
                                  .add = addCacheOptions,
                                  .refuses = "verify: an entry was damaged",
                                  .reports = cacheReports};

}  // namespace cutaway::cli
