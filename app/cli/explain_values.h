#pragma once
// explain --values: what a constant was made from, and its numbers beside those of the tensors that it was made from.
#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {

/// Prints it, or writes it to `json` if that is not an empty path. `step` as for explain: the graph before it; empty:
/// after all steps. Errors: there is no such node; it is not a constant; its value cannot be computed.
Result<int> explainValues(Compiled& compiled, const std::string& node, const std::string& step,
                          const std::string& json);

/// The shape of that JSON.
Json shapeOfValues();

}  // namespace cutaway::cli
