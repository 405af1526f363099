#include "cutaway/graph_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cutaway/guarded.h"
#include "cutaway/version.h"
#include "engine/cache/build_id.h"
#include "engine/cache/entry_index.h"
#include "engine/cache/graph_key.h"
#include "engine/cache/sealed_folder.h"
#include "engine/passes/defined_operators.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/session/arguments.h"
#include "engine/session/chosen_program.h"
#include "engine/session/execution.h"
#include "engine/session/graph_cache_entry.h"
#include "engine/support/fault_points.h"
#include "engine/support/file_lock.h"
#include "engine/support/files.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr const char* kKind = "graph";
constexpr const char* kIngredients = "ingredients";
constexpr const char* kSettings = "setting";
constexpr const char* kBytesSetting = "graph cache bytes";
constexpr int64_t kMostBytes = int64_t{2} << 30;
constexpr double kGraphBuildSeconds = 600;  // that another process may take to compile what this one wants, too
constexpr std::string_view kMaking = ".making-";

/// The cache beside a store of values; none, with the reason.
struct GraphCache {
    std::string root;
    std::shared_ptr<ValueStore> store;
    EntryIndex index;

    std::string graphs() const { return root + "/graphs"; }
    std::string folder(const std::string& key) const { return graphs() + "/" + key; }
    std::string lock(const std::string& key) const { return root + "/locks/" + key + ".lock"; }

    static Result<GraphCache> at(const std::string& cacheFile) {
        const std::string path = cacheFile.empty() ? ValueStore::defaultPath() : cacheFile;
        if (path.empty()) return Error{ErrorCode::NotFound, "there is no home for it", "", {}};
        CT_TRY(auto store, ValueStore::open(path));
        const fs::path parent = fs::path(path).parent_path();
        GraphCache cache{parent.empty() ? "." : parent.string(), store, EntryIndex(store, kKind)};
        for (const std::string& folder : {cache.graphs(), cache.root + "/locks"}) {
            std::error_code failed;
            const bool fresh = fs::create_directories(folder, failed);
            if (failed) return Error{ErrorCode::ToolFailed, failed.message(), folder, {}};
            if (fresh) fs::permissions(folder, fs::perms::owner_all, failed);
        }
        if (!isPrivateFolder(cache.graphs()))
            return invalidInput("somebody else may write to the folder, and what lies there runs as you",
                                cache.graphs());
        return cache;
    }
    int64_t limit() const {
        const auto kept = store->find(kSettings, kBytesSetting);
        return kept && *kept ? std::atoll((*kept)->c_str()) : kMostBytes;
    }
};

// -- the key

/// Of a file that has not been written to since its constants were last read, what they came to then: so that the
/// weights of a model are read once, not for each compile.
Result<std::string> valuesOf(const Module& module, const Session::State& state, GraphCache& cache) {
    struct stat file {};
    const std::string& path = module.origin.file;
    if (path.empty() || ::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return constantValues(module);
    std::string which = fs::absolute(path).string() + " " + state.settings.graph;
    for (const int64_t number : {static_cast<int64_t>(file.st_size), static_cast<int64_t>(file.st_ino),
                                 static_cast<int64_t>(file.st_mtim.tv_sec), static_cast<int64_t>(file.st_mtim.tv_nsec),
                                 static_cast<int64_t>(file.st_ctim.tv_sec), static_cast<int64_t>(file.st_ctim.tv_nsec)})
        which += " " + std::to_string(number);
    constexpr const char* kSpace = "constants of a file";
    if (const auto found = cache.store->find(kSpace, which); found && *found) return **found;
    CT_TRY(std::string values, constantValues(module));
    static_cast<void>(cache.store->keep(kSpace, which, values));
    return values;
}

Result<std::vector<Ingredient>> ingredientsOf(const Session::State& state, const CompileRequest& request,
                                              GraphCache& cache) {
    CT_TRY(const std::string values, valuesOf(*state.input, state, cache));
    CT_TRY(const std::string compiler, compilerIdentity({}));
    std::vector<Ingredient> all = graphIngredients(*state.input, values);
    CompileRequest whole = request;
    addDefinitionsOf(*state.input, whole);
    all.push_back(ingredient("request", whole.text(), whole.text()));
    CompileEnvironment now{buildId(), version(), buildText(), compiler, threadCount(), {}};
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "CUTAWAY_VECTORS"})
        if (const char* value = std::getenv(name))
            now.environment += (now.environment.empty() ? "" : " ") + std::string(name) + "=" + value;
    const std::vector<Ingredient> more = environmentIngredients(now);
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

/// Why a compile of this kind is not kept; empty if it is.
std::string whyNot(const CompileRequest& request, const CompileHooks& hooks) {
    if (hooks.cacheFile == "off") return "the cache is off";
    if (hooks.cacheFile.empty() && ValueStore::defaultPath().empty()) return "there is no home for a cache";
    if (request.mode != Mode::Inference) return "only runs for inference are kept";
    if (request.target == Target::Cuda) return "runs for a GPU are not kept";
    if (!request.plugins.empty()) return "passes of a plugin may do anything";
    if (request.passesOnly || !request.onlyStage.empty()) return "the run ends before there is a program";
    if (faultsAsked()) return "faults are planted";
    if (std::getenv("CUTAWAY_PASS_FUEL")) return "CUTAWAY_PASS_FUEL is set";
    return {};
}

// -- entries

std::vector<Ingredient> ingredientsIn(const std::string& folder) {
    const auto text = readFile(folder + "/" + kIngredients);
    return text ? parseIngredients(*text) : std::vector<Ingredient>();
}

/// The sentence of a miss.
std::string whyMissed(const GraphCache& cache, const std::vector<Ingredient>& wanted, const std::string& model) {
    const auto entries = cache.index.all();
    std::string nearest;
    std::pair<bool, size_t> best{true, wanted.size() + 1};  // of another model, ingredients that differ
    if (entries)
        for (const IndexedEntry& entry : *entries) {
            const std::vector<Ingredient> there = ingredientsIn(cache.folder(entry.name));
            if (there.empty()) continue;
            const std::pair<bool, size_t> now{entry.about.substr(0, entry.about.find('\t')) != model,
                                              differenceCount(wanted, there)};
            if (now < best) best = now, nearest = entry.name;
        }
    if (nearest.empty()) return "the cache has no compiled graph yet";
    return differenceText(wanted, ingredientsIn(cache.folder(nearest)));
}

std::string aboutOf(const Session::State& state, const CompileRequest& request) {
    return fs::path(state.input->origin.file).filename().string() + "\t" + request.text();
}

CompileTrace traceOf(const Session::State& state, const CompileRequest& request, const CompileHooks& hooks,
                     const Snapshot& graph) {
    CompileTrace trace;
    trace.request = request;
    trace.hooks = hooks;
    trace.input = state.input;
    Step& step = trace.steps.emplace_back();
    step.info.graphName = "main";
    step.info.stage = "cache";
    step.info.name = "read_from_cache";
    step.info.summary = "Reads what an earlier compile of the same graph came to";
    step.info.state = StepState::Changed;
    step.info.nodesBefore = static_cast<int>(state.input->graph().size());
    step.info.nodesAfter = static_cast<int>(graph->graph().size());
    step.before = state.input;
    step.after = graph;
    return trace;
}

/// The entry as a run; nothing if there is none, or none that can be read (`use` says so).
std::optional<RunId> readEntry(Session::State& state, GraphCache& cache, const CompileRequest& request,
                               const CompileHooks& hooks, CacheUse& use) {
    const std::string folder = cache.folder(use.key);
    std::error_code none;
    if (!fs::exists(folder, none)) return std::nullopt;
    const auto seal = openSealed(folder);
    auto kept = seal ? guarded([&] { return readCacheEntry(folder, *state.input, hooks.cacheFile); })
                     : Result<GraphCacheEntry>(seal.error());
    if (!kept) {
        use.remarks.push_back("an entry is compiled anew: " + kept.error().text());
        return std::nullopt;
    }
    const RunId id = state.add(traceOf(state, request, hooks, kept->graph));
    (*state.run(id))->cpu.emplace("", std::move(kept->program));
    if (const auto counted = cache.index.hit(use.key, seal->bytes(), aboutOf(state, request)); !counted)
        use.remarks.push_back("the use is not counted: " + counted.error().text());
    use.found = true;
    use.why.clear();
    return id;
}

/// Those go that nobody has used for longest; the one that was made now stays.
void makeRoom(GraphCache& cache, const std::string& made) {
    auto entries = cache.index.all();
    if (!entries) return;
    std::sort(entries->begin(), entries->end(),
              [](const IndexedEntry& a, const IndexedEntry& b) { return a.used < b.used; });
    int64_t bytes = 0;
    for (const IndexedEntry& entry : *entries) bytes += entry.bytes;
    const int64_t limit = cache.limit();
    for (const IndexedEntry& entry : *entries) {
        if (bytes <= limit) return;
        if (entry.name == made && limit > 0) continue;
        std::error_code none;
        fs::remove_all(cache.folder(entry.name), none);
        static_cast<void>(cache.index.forget(entry.name));
        bytes -= entry.bytes;
    }
}

/// What programs that were killed have left: whoever makes one now holds its lock.
void removeUnfinished(const GraphCache& cache) {
    std::error_code none;
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(cache.graphs(), none))
        if (entry.path().filename().string().starts_with(".")) left.push_back(entry.path());
    for (const fs::path& path : left) {
        const std::string name = path.filename().string(), key = name.substr(name.find('-') + 1);
        if (const auto lock = FileLock::take(cache.lock(key), 0)) fs::remove_all(path, none);
    }
}

Result<void> writeEntry(const Session::State& state, const Session::State::Run& run, GraphCache& cache,
                        const std::vector<Ingredient>& ingredients, const CacheUse& use) {
    const std::string making = cache.graphs() + "/" + std::string(kMaking) + use.key;
    std::error_code none;
    fs::remove_all(making, none);
    fs::create_directories(making, none);
    const auto written = [&]() -> Result<void> {
        CT_TRY_VOID(writeCacheEntry(making, *state.input, *run.trace.result(), run.cpu.at("")));
        CT_TRY_VOID(writeFile(making + "/" + kIngredients, ingredientsText(ingredients)));
        CT_TRY_VOID(sealFolder(making, {{"model", fs::path(state.input->origin.file).filename().string()}}));
        return putFolder(making, cache.folder(use.key));
    }();
    if (!written) {
        fs::remove_all(making, none);
        return written;
    }
    CT_TRY(const Seal seal, readSeal(cache.folder(use.key)));
    CT_TRY_VOID(cache.index.add(use.key, seal.bytes(), aboutOf(state, run.trace.request)));
    makeRoom(cache, use.key);
    return {};
}

/// Why this run is not kept; empty if it is.
std::string whyNotKept(const Session::State& state, const Session::State::Run& run) {
    for (const Step& step : run.trace.steps)
        if (!step.measurements.empty())
            return "pass " + step.info.name + " has measured, and may decide otherwise next time";
    const auto built = run.cpu.find("");
    if (built == run.cpu.end() || !run.built) return "nothing was built";
    if (!run.built->allSizes) return "its program takes the sizes of one run only";
    const std::vector<size_t> kept = preservedArguments(*state.input, *run.trace.result());
    for (size_t i = 0; i < state.input->graph().placeholders().size(); ++i) {
        const bool given = i >= state.input->inputs.size() || state.input->inputs[i].isGiven();
        if (given && std::find(kept.begin(), kept.end(), i) == kept.end())
            return "inputs were taken for constants, whose values a run gives";
    }
    return {};
}

}  // namespace

Result<RunId> compileToRun(Session& session, const CompileRequest& request, const CompileHooks& hooks, CacheUse& use,
                           const Progress& progress) {
    use = {};
    use.why = session.isOpen() ? whyNot(request, hooks) : "no model is open";
    if (!use.why.empty()) return session.compile(request, hooks, progress);
    Session::State& state = session.state();
    std::optional<GraphCache> cache;
    std::vector<Ingredient> ingredients;
    std::optional<FileLock> building;
    const auto read = guarded([&]() -> Result<std::optional<RunId>> {
        CT_TRY(cache, GraphCache::at(hooks.cacheFile));
        if (!cache->store->remark().empty()) use.remarks.push_back(cache->store->remark());
        CT_TRY(ingredients, ingredientsOf(state, request, *cache));
        use.key = keyOf(ingredients);
        if (auto id = readEntry(state, *cache, request, hooks, use)) return id;
        use.why = whyMissed(*cache, ingredients, fs::path(state.input->origin.file).filename().string());
        removeUnfinished(*cache);
        building = FileLock::take(cache->lock(use.key), kGraphBuildSeconds, nullptr, progress);
        if (!building) return std::optional<RunId>();
        return readEntry(state, *cache, request, hooks, use);  // another process may have been first
    });
    if (read && *read) return **read;
    if (!read) use.remarks.push_back("the cache is not used: " + read.error().text());
    CT_TRY(const RunId id, session.compile(request, hooks, progress));
    if (!read || cache->limit() == 0) return id;
    const auto kept = guarded([&]() -> Result<void> {
        CT_TRY(Session::State::Run * run, state.run(id));
        const std::lock_guard turn(run->turn);
        // What goes wrong here goes wrong once more, in the words of whoever runs it.
        if (!programOf(*run, {}, nullptr, progress)) return {};
        if (const std::string why = whyNotKept(state, *run); !why.empty()) {
            use.why = why;
            return {};
        }
        return writeEntry(state, *run, *cache, ingredients, use);
    });
    if (!kept && kept.error().code == ErrorCode::Unsupported) use.why = kept.error().message;
    else if (!kept) use.remarks.push_back("the compiled graph is not kept: " + kept.error().text());
    return id;
}

Result<CacheUse> whyCached(Session& session, const CompileRequest& request, const CompileHooks& hooks) {
    return guarded([&]() -> Result<CacheUse> {
        CacheUse use;
        use.why = whyNot(request, hooks);
        if (!use.why.empty()) return use;
        Session::State& state = session.state();
        CT_TRY(GraphCache cache, GraphCache::at(hooks.cacheFile));
        CT_TRY(const std::vector<Ingredient> ingredients, ingredientsOf(state, request, cache));
        use.key = keyOf(ingredients);
        std::error_code none;
        if (fs::exists(cache.folder(use.key), none)) {
            const auto sound = openSealed(cache.folder(use.key));
            use.found = sound.has_value();
            if (!sound) use.why = "the entry is damaged: " + sound.error().text();
        } else {
            use.why = whyMissed(cache, ingredients, fs::path(state.input->origin.file).filename().string());
        }
        return use;
    });
}

Result<CachedGraphs> cachedGraphs(const std::string& cacheFile, bool verify) {
    return guarded([&]() -> Result<CachedGraphs> {
        CachedGraphs all;
        CT_TRY(GraphCache cache, GraphCache::at(cacheFile));
        if (!cache.store->remark().empty()) all.remarks.push_back(cache.store->remark());
        all.limit = cache.limit();
        CT_TRY(const std::vector<IndexedEntry> index, cache.index.all());
        std::error_code none;
        if (verify) removeUnfinished(cache);
        std::vector<std::string> keys;
        for (const auto& entry : fs::directory_iterator(cache.graphs(), none))
            if (!entry.path().filename().string().starts_with(".")) keys.push_back(entry.path().filename().string());
        for (const IndexedEntry& entry : index)  // a folder that somebody removed drops its own entry
            if (std::find(keys.begin(), keys.end(), entry.name) == keys.end())
                static_cast<void>(cache.index.forget(entry.name));
        for (const std::string& key : keys) {
            CachedGraph graph;
            graph.key = key;
            const auto found =
                std::find_if(index.begin(), index.end(), [&](const IndexedEntry& each) { return each.name == key; });
            if (found != index.end()) {
                graph.model = found->about.substr(0, found->about.find('\t'));
                graph.request = found->about.substr(std::min(found->about.find('\t'), found->about.size() - 1) + 1);
                graph.hits = found->hits;
                graph.made = found->made;
                graph.used = found->used;
            }
            auto seal = verify ? openSealed(cache.folder(key)) : readSeal(cache.folder(key));
            if (seal) {
                graph.bytes = seal->bytes();
                if (graph.model.empty()) graph.model = seal->facts["model"];
            } else {
                graph.problem = seal.error().text();
                if (verify) {
                    fs::remove_all(cache.folder(key), none);
                    static_cast<void>(cache.index.forget(key));
                }
            }
            all.bytes += graph.bytes;
            all.entries.push_back(std::move(graph));
        }
        std::sort(all.entries.begin(), all.entries.end(), [](const CachedGraph& a, const CachedGraph& b) {
            return std::pair(b.used, a.key) < std::pair(a.used, b.key);
        });
        return all;
    });
}

Result<void> removeGraph(const std::string& cacheFile, const std::string& key) {
    return guarded([&]() -> Result<void> {
        CT_TRY(GraphCache cache, GraphCache::at(cacheFile));
        if (key.empty() || key.find_first_of("/.") != std::string::npos)
            return invalidInput("this is not a key of an entry: '" + key + "'", "");
        std::error_code failed;
        fs::remove_all(cache.folder(key), failed);
        if (failed) return Error{ErrorCode::ToolFailed, failed.message(), cache.folder(key), {}};
        return cache.index.forget(key);
    });
}

Result<int> clearGraphs(const std::string& cacheFile) {
    return guarded([&]() -> Result<int> {
        CT_TRY(const CachedGraphs all, cachedGraphs(cacheFile));
        for (const CachedGraph& graph : all.entries) CT_TRY_VOID(removeGraph(cacheFile, graph.key));
        CT_TRY(const GraphCache cache, GraphCache::at(cacheFile));
        removeUnfinished(cache);
        return static_cast<int>(all.entries.size());
    });
}

Result<void> limitGraphs(const std::string& cacheFile, int64_t bytes) {
    return guarded([&]() -> Result<void> {
        CT_TRY(GraphCache cache, GraphCache::at(cacheFile));
        CT_TRY_VOID(cache.store->keep(kSettings, kBytesSetting, std::to_string(bytes)));
        makeRoom(cache, {});
        return {};
    });
}

}  // namespace cutaway
