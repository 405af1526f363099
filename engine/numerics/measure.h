#pragma once
// One value beside its reference and the same in f64: what differs, and whether that is an error or what the dtype
// cannot do better.
#include "cutaway/node_numbers.h"
#include "engine/ir/type.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Fills in counts, errors and verdict of `row`. `reference`, `wide`: undefined for none.
void measure(const Tensor& value, const Tensor& reference, const Tensor& wide, const JudgeOptions& options,
             NodeNumbers& row);

/// What contradicts the type that the graph gives a value: count of results, dtype, sizes, and strides of dims with
/// more than one element (DBG-5); empty if nothing does.
std::string typeProblem(const ValueType& type, const std::vector<Tensor>& values);

}  // namespace cutaway
