#pragma once
// How much work a call is that no kernel computes.
#include "engine/ir/node.h"

namespace cutaway {

/// Two per multiply-add of matrix products, convolutions, attention and their gradients; elsewhere one per element of
/// the first result. For estimates: the largest number instead of one that does not fit, 0 where sizes are symbols.
int64_t operationsOf(const Node& node);

}  // namespace cutaway
