#pragma once
// The constants that a compiled package holds, read where they lie in its library. Nothing is loaded.
#include "cutaway/packages.h"
#include "engine/formats/folder.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Errors: it is computed when the package is loaded; the sources do not tell its type; the library lacks its bytes, or
/// is damaged.
Result<Tensor> packagedTensor(const FileTree& tree, const PackagedModel& model, size_t constant);

}  // namespace cutaway
