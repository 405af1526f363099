#pragma once
// AOTInductor packages: compiled code in a .pt2 archive, or the folder of such files (spec: input-formats §3.1,
// debug-minify-export §3.5). Only read, never loaded or run.
#include "cutaway/packages.h"
#include "engine/formats/folder.h"
#include "engine/formats/zip_archive.h"

namespace cutaway {

/// Whether a folder is one: wrappers or data/aotinductor, and no Python, which may hold graphs.
bool isPackage(const FileTree& tree);
/// What cannot be read is a remark.
CompiledPackage readPackage(const FileTree& tree, const std::string& path);
/// No graphs; `contents` has every entry with its size and what the sources tell, `remarks` the metadata.
OpenedFile describePackage(const CompiledPackage& package);

}  // namespace cutaway
