#pragma once
#include "engine/ir/op.h"

namespace cutaway {

/// The twin that writes into the list, of a list operator that PyTorch's reinplacing knows; null for all others.
const Op* reinplacedListOp(const Op& op);

}  // namespace cutaway
