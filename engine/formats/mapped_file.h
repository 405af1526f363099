#pragma once
// Files as read-only memory. Nothing is read before it is touched, so opening a model costs its graph, not its weights.
#include <memory>
#include <string>

#include "cutaway/result.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// The whole file, mapped; an empty file gives an empty storage. The mapping lives as long as the storage or any view
/// of it. The file must not be cut short by others meanwhile, as for every mapping.
Result<std::shared_ptr<Storage>> mapFile(const std::string& path);

}  // namespace cutaway
