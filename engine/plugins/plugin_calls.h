#pragma once
// What plugins are asked beside graphs: files that an importer reads, tensors that a judge compares.
#include "cutaway/plugins.h"
#include "engine/formats/open.h"
#include "engine/plugins/plugin_registry.h"

namespace cutaway {

/// Whether an importer takes files of this name, known before the file is read.
bool hasImporter(const std::string& path);
/// Opens a file through the first importer that takes its name. The importer gets the file's name and bytes, no more.
/// Errors: none takes it; what the importer says; a graph that does not parse or verify.
Result<OpenedFile> importFile(const std::string& path, const Progress& progress = {});

/// Whether a judge takes a tensor for the expected one. A tensor of None is equal to none but None, and nobody is
/// asked.
Result<OracleVerdict> askJudge(const FoundItem& judge, const Tensor& actual, const Tensor& expected,
                               const Progress& progress = {});

}  // namespace cutaway
