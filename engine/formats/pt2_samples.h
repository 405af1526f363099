#pragma once
// The inputs that a program was exported with.
#include "engine/formats/json.h"
#include "engine/formats/open.h"
#include "engine/formats/zip_archive.h"

namespace cutaway {

/// Reads the (args, kwargs) in the entry, one value per user input, in the order of the program's in_spec. Objects,
/// such as registered dataclasses, are not made: their fields are read where in_spec names them. Optional data: what is
/// wrong with it becomes a remark.
void readSampleInputs(const ZipArchive& archive, const std::string& entry, const Json& root, OpenedGraph& graph);

}  // namespace cutaway
