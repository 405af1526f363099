#include "engine/ops/op_registry.h"

namespace cutaway {

std::span<const OpDef> sortOps() { return {}; }

}  // namespace cutaway
