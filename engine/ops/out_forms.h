#pragma once
// Operators that write into tensors they are given, from their functional forms.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/op.h"

namespace cutaway {

/// What "aten.add.out" or "aten.topk.values" stands for: the functional operator, and the parameters that its results
/// are written to.
struct OutFormOf {
    const Op* functional = nullptr;
    std::vector<std::string> results;
};
/// Nothing if no operator has that name with an overload that writes; `find` gives operators with rows.
std::optional<OutFormOf> outFormOf(std::string_view name, const Op* (*find)(std::string_view));
/// The schema: that of the functional form without what the tensors decide (a factory's dtype, layout, device), and
/// with them as keywords at its end.
Schema outSchema(std::string_view name, const OutFormOf& form);
/// The row, whose expansion is the functional call and copies.
OpDef outDef(const OutFormOf& form);

}  // namespace cutaway
