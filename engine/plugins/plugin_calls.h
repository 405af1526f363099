#pragma once
// Files that a plugin's importer reads.
#include "engine/formats/open.h"

namespace cutaway {

/// Whether an importer takes files of this name, known before the file is read.
bool hasImporter(const std::string& path);
/// Opens a file through the first importer that takes its name. The importer gets the file's name and bytes, no more.
/// Errors: none takes it; what the importer says; a graph that does not parse or verify.
Result<OpenedFile> importFile(const std::string& path);

}  // namespace cutaway
