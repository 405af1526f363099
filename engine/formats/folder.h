#pragma once
// Folders that PyTorch leaves behind (spec: input-formats §6.1): torch_compile_debug trees, minifier folders, and what
// GraphModule.to_folder writes. A folder is a list of files and a way to read them, so that tests need no disk.
#include <functional>

#include "engine/formats/open.h"

namespace cutaway {

struct FileTree {
    std::vector<std::string> files;                                   // relative, "/" between parts, sorted
    std::function<Result<ByteSource>(const std::string& file)> read;  // of one of them
};

/// The files below a folder: at most 8 levels deep and 20 000 files, symbolic links left out.
Result<FileTree> listFolder(const std::string& path);

/// Every graph of the tree by its path, to_folder's module with its tensors, everything else as contents. Errors: no
/// graph in it, too many files.
Result<OpenedFile> readFolder(const FileTree& tree, const std::string& path, const OpenOptions& options);

}  // namespace cutaway
