#pragma once
// A compiled graph as the files of a folder.
#include "engine/runtime/cpu/cpu_backend.h"

namespace cutaway {

struct GraphCacheEntry {
    Snapshot graph;  // the last of the run
    CpuProgram program;
};
/// Writes it into an empty folder. `opened`: the graph that it was compiled from, whose tensors it names. Errors: the
/// disk; the graph holds what the files do not.
Result<void> writeCacheEntry(const std::string& folder, const Module& opened, const Module& graph,
                             const CpuProgram& program);
/// The libraries stay in the folder, and are loaded from there. Errors: bytes of another form, a tensor that `opened`
/// does not have.
Result<GraphCacheEntry> readCacheEntry(const std::string& folder, const Module& opened, const std::string& store);

}  // namespace cutaway
