#pragma once
// What a reduction does, as a table: each row gives its states and how they begin, take an element, are joined and give
// the result, all as expressions. Lanes, parts and threads join by `combine`; no printer and no interpreter knows a
// reducer by name.
#include <string_view>
#include <vector>

#include "engine/ops/lower.h"

namespace cutaway {

struct Reducer {
    std::string_view name;
    /// Of the states for bodies of this dtype, where f32 is summed in `sums` (TargetInfo).
    std::vector<DType> (*stateTypes)(DType body, DType sums);
    DType (*resultType)(DType body);
    /// One expression per state, by the states' dtypes.
    std::vector<Expr> (*identity)(const std::vector<DType>& states);
    /// The states after `value`, which stands at row-major position `at` (I64) among the reduced elements.
    std::vector<Expr> (*step)(const std::vector<Expr>& states, const Expr& value, const Expr& at);
    std::vector<Expr> (*combine)(const std::vector<Expr>& a, const std::vector<Expr>& b);
    Expr (*finish)(const std::vector<Expr>& states, DType body);
    bool position = false;  // reads `at`
    bool waits = false;     // a step waits for the one before: the reduction is latency-bound
};

/// Rows of ReduceKind come first, in its order.
const Reducer& reducer(int number);
/// nullopt for a name that is none: "sum", "argmax".
std::optional<int> reducerByName(std::string_view name);

}  // namespace cutaway
