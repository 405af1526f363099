#include "engine/ops/op_registry.h"

namespace cutaway {

std::span<const OpDef> gemmOps() { return {}; }

}  // namespace cutaway
