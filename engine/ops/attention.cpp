#include "engine/ops/op_registry.h"

namespace cutaway {

std::span<const OpDef> attentionOps() { return {}; }

}  // namespace cutaway
