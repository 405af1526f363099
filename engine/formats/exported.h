#pragma once
// What `export` writes: a folder, or a zip archive of it, with a manifest. Only listed and checked, never loaded or
// run.
#include "engine/formats/folder.h"
#include "engine/formats/zip_archive.h"

namespace cutaway {

/// SHA-256, by parts: files may be larger than memory. Errors: the disk.
Result<std::string> checksumOf(const ByteSource& source);

/// Whether it has a manifest of ours.
bool isExported(const FileTree& tree);
/// No graphs; what the manifest says of inputs, outputs and weights, and every file. Errors: the manifest is damaged,
/// or files are missing or others than it has the checksums of.
Result<OpenedFile> readExported(const FileTree& tree, const std::string& path);
/// The files of an archive; it outlives the tree.
FileTree treeOf(const ZipArchive& archive);

}  // namespace cutaway
