#pragma once
// Removal of mutation (spec: autograd A.7). Runs after composites are expanded and before decomposition.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Every in-place op becomes its functional form and later reads use the new value; writes through a view are scattered
/// back into the base, and other views of it are derived again where they are next read, as in PyTorch, so that the
/// work grows with what is read. Writes to a list of tensors are one call and a write each. What a placeholder holds at
/// the end is written back by one `copy_` per mutated placeholder before the output. Each mutation is one rewrite.
/// Leaves alone: those final copies. Error, by name: writes through views that have no inverse (expand, unfold).
Result<bool> functionalize(Module& module, Rewriter& rewriter);

/// A `copy_` into a placeholder with nothing but such copies and the output after it.
bool isFinalCopy(const Node& node);
/// Whether one of those gives this input its newest value.
bool isWrittenAtEnd(const Node& input);

}  // namespace cutaway
