#pragma once
// How much work a call is that no kernel computes.
#include <functional>

#include "engine/ir/node.h"

namespace cutaway {

/// Two per multiply-add of matrix products, convolutions, attention and their gradients; elsewhere one per element of
/// the first result. For estimates: the largest number instead of one that does not fit, 0 where there are none.
/// `numberFor`: of a size, also of one that is an expression.
using NumberFor = std::function<int64_t(const SymInt&)>;
int64_t operationsOf(const Node& node, const NumberFor& numberFor);

}  // namespace cutaway
