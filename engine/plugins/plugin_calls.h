#pragma once
// What plugins are asked beside graphs: files that an importer reads, tensors that a judge compares.
#include "cutaway/plugins.h"
#include "engine/formats/open.h"
#include "engine/plugins/plugin_registry.h"
#include "engine/runtime/plugin_judge.h"

namespace cutaway {

/// Whether an importer takes files of this name, known before the file is read.
bool hasImporter(const std::string& path);
/// Opens a file through the first importer that takes its name. The importer gets the file's name and bytes, no more.
/// Errors: none takes it; what the importer says; a graph that does not parse or verify.
Result<OpenedFile> importFile(const std::string& path, const Progress& progress = {});

/// A judge, "PLUGIN" or "PLUGIN.JUDGE", asked in the plugin's own process.
Result<PluginJudge> findJudge(const std::string& name);
PluginJudge judgeOf(const PluginItemRef& found);

}  // namespace cutaway
