#pragma once
// Calls of graphs that a plugin's pass makes anew: what they return, and whether their graphs fit.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// Null if there is none of the name.
using GraphNamed = std::function<const Module*(std::string_view name)>;

/// The results of a call of the operator with these arguments, as its graphs return them. `where`: the call's name, for
/// errors: no graph of a name; a graph that takes other values than it is given, or returns what the call cannot take;
/// an operator of which nothing is known of how it calls its graphs.
Result<ValueType> typeOfGraphCall(std::string_view op, const std::vector<Argument>& args, const std::string& where,
                                  const GraphNamed& graphNamed);

}  // namespace cutaway
