#pragma once
// Weights, buffers and constants of .pt2 archives: payload configs and raw storages (spec: input-formats §3.2).
#include <map>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/pt2_types.h"
#include "engine/formats/zip_archive.h"

namespace cutaway {

/// Reads `<folder><model>_<configSuffix>` and the storages it names into `tensors`; falls back to `<folder><model>.pt`.
/// Names that share a storage in the file share it here. What is not a plain tensor becomes a remark. Without a config
/// the file has no such payloads.
Result<void> readPt2Payloads(const ZipArchive& archive, const std::string& folder, const std::string& model,
                             const std::string& configSuffix, std::map<std::string, Tensor>& tensors,
                             std::vector<std::string>& remarks);
/// A torch.save dict of tensors by name, as the old layout and early archives have it.
Result<void> readSavedPayloads(const ZipArchive& archive, const std::string& entry,
                               std::map<std::string, Tensor>& tensors, std::vector<std::string>& remarks);

}  // namespace cutaway
