#pragma once
// One value beside its reference and the same in f64: what differs, and whether that is an error or what the dtype
// cannot do better.
#include <functional>

#include "cutaway/node_numbers.h"
#include "cutaway/result.h"
#include "engine/ir/type.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Fills in counts, errors and verdict of `row`, but what a plugin's judge says of it. `reference`, `wide`: undefined
/// for none.
void measure(const Tensor& value, const Tensor& reference, const Tensor& wide, const JudgeOptions& options,
             NodeNumbers& row);

/// Why a plugin's judge refuses a value for its reference; empty: it takes it. Errors: what has become of its process.
using AskJudge = std::function<Result<std::string>(const Tensor& value, const Tensor& reference)>;
/// measure(), and what the judge says where Judge::Plugin asks one.
Result<void> measureAndAsk(const Tensor& value, const Tensor& reference, const Tensor& wide,
                           const JudgeOptions& options, const AskJudge& ask, NodeNumbers& row);

/// What contradicts the type that the graph gives a value: count of results, dtype, sizes, and strides of dims with
/// more than one element (DBG-5); empty if nothing does.
std::string typeProblem(const ValueType& type, const std::vector<Tensor>& values);

}  // namespace cutaway
