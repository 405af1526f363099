#pragma once
// The cache of compiled graphs: what a graph and a request come to - the last graph, the host program, its kernels - is
// kept under the digest of all that it depends on, so that a second compile of an unchanged model only reads
// (engine/cache/README.md).
#include <string>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

/// How the cache served one compile.
struct CacheUse {
    bool found = false;
    std::string key;                   // empty: it was not asked
    std::string why;                   // it was not asked, or did not have it: a sentence. With `found`: empty
    std::vector<std::string> remarks;  // what is wrong with the cache
};

/// Compiles and builds for whoever runs the result on the CPU and looks at no step: what the cache has is read, and the
/// run then has one step, "read_from_cache"; what it has not is compiled as ever, and kept. Errors: of
/// Session::compile.
Result<RunId> compileToRun(Session& session, const CompileRequest& request, const CompileHooks& hooks, CacheUse& use,
                           const Progress& progress = {});
/// Whether the cache has it, and if not, which ingredient is another than that of the nearest entry. Compiles nothing.
Result<CacheUse> whyCached(Session& session, const CompileRequest& request, const CompileHooks& hooks);

struct CachedGraph {
    std::string key, model, request;                  // the file's name; the request's text
    int64_t bytes = 0, hits = 0, made = 0, used = 0;  // seconds since 1970
    std::string problem;                              // what is damaged; of a list alone: empty
};
struct CachedGraphs {
    std::vector<CachedGraph> entries;  // the latest used first
    int64_t bytes = 0, limit = 0;      // of all; above the limit those go that nobody has used for longest
    std::vector<std::string> remarks;
};
/// `cacheFile` of all: as CompileHooks'. `verify`: reads every byte, and removes what is damaged or half made.
Result<CachedGraphs> cachedGraphs(const std::string& cacheFile, bool verify = false);
/// Removes one entry, by its key.
Result<void> removeGraph(const std::string& cacheFile, const std::string& key);
/// Removes every entry; how many there were.
Result<int> clearGraphs(const std::string& cacheFile);
/// 2 GiB until somebody sets it. 0: nothing is kept.
Result<void> limitGraphs(const std::string& cacheFile, int64_t bytes);

}  // namespace cutaway
