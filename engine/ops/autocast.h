#pragma once
// What autocast does to a call: PyTorch's lists of operators that compute in lower precision, in float32, or in the
// widest precision of their operands.
#include <map>

#include "engine/ops/build.h"

namespace cutaway {

/// The devices for which autocast is on, and the lower precision of each.
using AutocastState = std::map<DeviceType, DType>;

/// PyTorch's lists for a device; Other: the operator is in none, but the operators that it expands to may be.
enum class AutocastPolicy : uint8_t { Other, Lower, Float32, Float32Result, Widest };
AutocastPolicy autocastPolicy(const Op& op, DeviceType device);

/// The bound arguments of a call, its floating operands on these devices converted by calls that the builder makes.
std::vector<Argument> autocastArguments(GraphBuilder& builder, const Op& op, std::vector<Argument> args,
                                        const AutocastState& state);
/// The same for an existing call, before which the builder stands, and whose type is inferred again. Shorthand for
/// products gets operands of one precision.
Result<void> autocastCall(Node& call, const AutocastState& state, GraphBuilder builder);

}  // namespace cutaway
