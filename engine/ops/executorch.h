#pragma once
// How executorch writes graphs: ATen's operators under the names of its dialects, and calls of backends.
#include <optional>
#include <string_view>

#include "engine/ir/node.h"

namespace cutaway {

/// "executorch.exir.dialects.edge._ops.aten.add.Tensor" is aten.add.Tensor; other names stay as they are.
std::string_view withoutDialect(std::string_view name);
/// "aten_add_Tensor" of "executorch_exir_dialects_edge__ops_aten_add_Tensor", as Python text shows such a call.
std::optional<std::string_view> textOfDialect(std::string_view name);

/// Whether an attribute is what `executorch_call_delegate` calls: a module of a backend, not a tensor.
bool isDelegate(const Node& attribute);
/// What to do about a call of an operator that no table has, as a note of an error.
std::string_view adviceOnUnknown(const Op& op);

}  // namespace cutaway
