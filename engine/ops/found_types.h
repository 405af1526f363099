#pragma once
// Types of calls whose result depends on data, where nothing says them: with size symbols of their own.
#include <functional>
#include <optional>
#include <span>

#include "engine/ir/op.h"
#include "engine/ir/type.h"

namespace cutaway {

class Argument;

/// `newSymbol` gives a symbol that the graph does not have yet. Known are masks as indices, positions of what is not 0,
/// and numbers that are read from tensors; of other calls nothing is said.
std::optional<ValueType> typeOfFound(const Op& op, std::span<const Argument> args,
                                     const std::function<Expr(DType)>& newSymbol);

}  // namespace cutaway
