#pragma once
// What is said of a result: its range, and how far it is from what was expected.
#include "cutaway/session.h"
#include "engine/ir/node.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// `output` may be undefined, for None and for text; `expected` null for nothing. `returned`: what the graph returns;
/// a number in it has a kind but no dtype, so an expected one of its kind may have any. `tolerance`: compareOutput's.
OutputReport reportOf(const std::string& name, const Argument& returned, const Tensor& output, const Tensor* expected,
                      double tolerance = 0);
OutputReport reportOf(const std::string& name, const Tensor& output, const Tensor* expected, double tolerance = 0);

}  // namespace cutaway
