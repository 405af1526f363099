#pragma once
// How operators are written for all examples of a vmap at once.
#include <optional>
#include <span>

#include "engine/passes/vmap/batched_call.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The results with the examples along dim 0, null where the call has none. "Not handled" where the rule's conditions
/// fail, and then it has made no node.
using BatchRule = Values (*)(BatchedCall& call);

struct BatchRow {
    std::string_view op;
    BatchRule rule;
};
std::span<const BatchRow> batchedViews();
std::span<const BatchRow> batchedReductions();
std::span<const BatchRow> batchedProducts();
std::span<const BatchRow> batchedIndexing();
/// Every tensor is an operand of its own: elementwise operators.
Values batchPointwise(BatchedCall& call);

/// The rule of an operator; null if it has none.
BatchRule batchRuleOf(const Op& op);

/// The call as the body of a map over the examples, which any call can be. Errors: results of unknown types.
Result<Values> batchByMap(Module& module, BatchedCall& call, Rewriter& rewriter);

}  // namespace cutaway
