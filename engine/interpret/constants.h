#pragma once
// Values of constants that passes have made (ir/recipe.h): computed on demand, kept while there is room.
#include "cutaway/jobs.h"
#include "engine/ir/module.h"

namespace cutaway {

/// A constant that `graph` computes: no inputs, one result, only pure calls.
std::shared_ptr<const Recipe> makeRecipe(std::shared_ptr<const Module> graph);

/// The module with tensors in place of the recipes that its graph reads, for whoever runs it; null if it reads none.
/// They are computed on all cores. Errors: of the interpreter; Cancelled.
Result<Snapshot> withConstants(const Module& module, const Progress& progress = {});

/// The same with tensors that are computed when their bytes are first read, for whoever hands them to another process:
/// only those that are on their way take memory here.
Result<Snapshot> withDeferredConstants(const Module& module);

/// Bytes that the constants of a graph take together, memory that several share once.
int64_t constantBytes(const Module& module);

/// The memory that a constant lies in: `of` is equal for those that share it, null for one without data. The bytes are
/// those of the program's own tensor that it is, or is a view of; 0 for computed ones, which have what their type says.
struct ConstantPlace {
    const void* of = nullptr;
    int64_t bytes = 0;
};
ConstantPlace constantPlace(const Module& module, const std::string& name);

/// Limits the bytes of computed constants that are kept after their last holder has let go of them; 2 GiB at the start.
/// Returns the limit so far.
int64_t limitKeptConstants(int64_t bytes);

}  // namespace cutaway
