#pragma once
#include "engine/ir/module.h"

namespace cutaway {

/// Compares the dtypes and numeric sizes that a file declares with what its calls make of their operands. Where they
/// differ (torch.export under autocast declares what autocast would make, without its casts) the operands count, as
/// they do when PyTorch runs the file, and a remark says so.
void compareDeclaredTypes(Module& module);

}  // namespace cutaway
