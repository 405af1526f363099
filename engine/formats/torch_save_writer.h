#pragma once
// A state dict as torch.save writes it, which torch.load(weights_only=True) and our own reader take (spec:
// input-formats §2). Tensors over one storage share it in the file.
#include "engine/formats/safetensors.h"

namespace cutaway {

/// Errors: a dtype without a storage class, the disk.
Result<void> writeStateDict(const std::string& path, const NamedTensors& tensors);

}  // namespace cutaway
