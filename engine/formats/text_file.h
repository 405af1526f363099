#pragma once
// Files of FX text: one printed graph, or a log (TORCH_LOGS) with many among other lines (spec: input-formats §4,
// §6.1).
#include "engine/formats/open.h"

namespace cutaway {

/// One graph of a log, cut out of it. The views live as long as the text they were cut from.
struct TextBlock {
    std::string name;       // "0/0 Forward graph 0", unique within the log
    std::string stage;      // that comes next (ModuleOrigin::stage)
    std::string_view text;  // colours and prefixes removed
    size_t firstLine = 0;   // lines of the log before it
};
struct SplitLog {
    std::string plain;  // what the blocks view
    std::vector<TextBlock> blocks;
};
/// Every graph in class form at the outermost level of the text (LOG-1).
std::unique_ptr<const SplitLog> splitLog(std::string_view text);

/// A text of one graph, in any form, is read whole; in any other each block of the log is a graph.
Result<OpenedFile> openTextFile(std::string_view text, const std::string& path, const OpenOptions& options);

/// Child modules as the constructor's text makes them, "Linear(in_features=2, …)", on the nodes that call them.
void describeModules(Module& module, std::string_view constructor);

/// Adds the graph with its name and file, or a remark that says why not; drops one that `options` does not ask for.
void addGraph(OpenedFile& file, Result<OpenedGraph> graph, const std::string& name, const OpenOptions& options);
/// An error if a file that should hold graphs gave none: the one graph's own error, or one that lists the remarks.
Result<void> requireGraphs(const OpenedFile& file, const OpenOptions& options);

}  // namespace cutaway
