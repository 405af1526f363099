#pragma once
// Plugins' libraries as passes of the last stage: each marks the calls that its library takes, one a rewrite, in front
// of the libraries of our own. Who runs the program starts the process that computes them (runtime/cpu/plugin_library).
#include <functional>

#include "engine/ir/module.h"
#include "engine/libraries/plugin_rows.h"
#include "engine/plugins/plugin_registry.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Where such passes stand in a request and in a run: "library.blas.products".
inline constexpr const char* kLibraryPlace = "library";

/// A library as a program names it, or a judge as a worker asks it.
PluginLibrary describedItem(const PluginItemRef& found);

std::function<Result<bool>(Module&, Rewriter&)> libraryFunction(const PluginItemRef& found);

/// Why the library does not take a call as it stands in a graph, in a sentence; empty: it does. Errors: what has become
/// of its process.
Result<std::string> whyNotTaken(const PluginItemRef& found, const Node& call, const Stopped& stopped = {});

/// What `plugin check` tries of a library: the samples of its operators, each asked about twice, once more with a size
/// that is not known yet, computed, and compared with the reference.
std::vector<PluginTrial> checkLibrary(const PluginItemRef& found, const Progress& progress);

}  // namespace cutaway
