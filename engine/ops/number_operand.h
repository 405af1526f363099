#pragma once
// Overloads that take a number where the operator proper takes a tensor: the number becomes one without dims, which
// does not widen the dtype of the other, as PyTorch wraps it.
#include "engine/ops/expanded.h"

namespace cutaway {

/// The number at a parameter as a tensor that does not widen `like`, as PyTorch wraps it. Null, with an error, if it is
/// known only in the run.
Value numberLike(Decomposition& d, size_t position, const Value& like);

/// The call `op` of (number, tensor), or of (tensor, number).
Values numberFirst(Decomposition& d, std::string_view op);
Values numberSecond(Decomposition& d, std::string_view op);

/// Rows of such overloads. Whether the number stands first or second is in the operator's name.
#define CUTAWAY_NUMBER_FIRST(schema, op, samples) \
    shorthand(                                    \
        schema, [](Decomposition& d) { return numberFirst(d, op); }, samples, Tag::Pointwise)
#define CUTAWAY_SECOND_NUMBER(schema, op, samples, tags) \
    shorthand(                                           \
        schema, [](Decomposition& d) { return numberSecond(d, op); }, samples, tags)

}  // namespace cutaway
