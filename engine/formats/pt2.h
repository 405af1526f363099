#pragma once
// torch.export.save archives, both layouts (spec: input-formats §3). Weights are read when they are used.
// Leaves alone: compiled artifacts in the archive (listed), functionalisation of training graphs (a step of the
// engine).
#include <string>

#include "cutaway/result.h"
#include "engine/formats/open.h"
#include "engine/formats/zip_archive.h"

namespace cutaway {

/// New layout: every models/*.json of the archive.
Result<OpenedFile> readPt2(const ZipArchive& archive, const OpenOptions& options);
/// Old layout: serialized_exported_program.json and its torch.save companions.
Result<OpenedFile> readFlatPt2(const ZipArchive& archive, const OpenOptions& options);

/// The program of one JSON text without any payload: what both layouts share. Remarks are left in module.origin.
Result<std::unique_ptr<Module>> readPt2Program(std::string_view json, const std::string& where);

/// Compares the type of every call, as our shape rules infer it from its arguments' types, with the type it has (in an
/// imported graph: the one PyTorch recorded, PT2-15). One line per difference, subgraphs included; opaque calls and
/// calls of them are skipped.
std::vector<std::string> differencesFromInference(const Module& module);

}  // namespace cutaway
