#pragma once
// Repro scripts: fx_graph_runnable.py, repro.py, minifier_launcher.py, checkpoints (spec: input-formats §5). The script
// is read as text, never run. Inputs come from its load_args lines, types from these lines and from shape inference.
// Leaves alone: Triton kernel sources, GPU comments, the main block.
#include <functional>

#include "engine/formats/open.h"

namespace cutaway {

/// The file of a stored input by its name, 40 hexadecimal digits; null if there is none.
using StorageFinder = std::function<std::shared_ptr<Storage>(const std::string& hash)>;

/// One graph with an input per placeholder (REPRO-1..11). Errors: the text, a count of inputs that does not fit
/// (REPRO-11), a script without a graph (REPRO-9), or one that loads a .pt2 (REPRO-10), which is named.
Result<OpenedFile> readRepro(std::string_view text, const std::string& path, const StorageFinder& find);

/// Looks for storages in `storages/` and `checkpoints/storages/` in the script's folder and those around it, where
/// PyTorch puts them, in the save_dir that the script's text names, wherever its end lies there, and in every folder
/// `storages` below the script's.
StorageFinder storagesBeside(const std::string& path, std::string_view text = {});

}  // namespace cutaway
