#include "engine/ops/op_registry.h"

namespace cutaway {

std::span<const OpDef> activationBackwardOps() { return {}; }

}  // namespace cutaway
