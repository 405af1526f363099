#pragma once
// AOTInductor packages: compiled code in a .pt2 archive (spec: input-formats §3.1). Only listed, never loaded or run:
// the models, their files by kind, and the metadata.
#include "engine/formats/open.h"

namespace cutaway {

/// No graphs; `contents` has every entry with its size, `remarks` the metadata. Errors: none beyond the archive's own.
OpenedFile readPackage(const ZipArchive& archive);

/// "0.wrapper.so (18 kB, compiled library)" of every compiled entry; for archives that hold graphs as well.
std::string describeEntry(const ZipEntry& entry);

}  // namespace cutaway
