#pragma once
// Loops backwards (while_loop, scan, associative_scan). The forward keeps what a loop carries into each step; another
// loop goes through the steps, the last first, and computes again what a step has computed inside.
#include "engine/autograd/graph_call.h"
#include "engine/autograd/graph_calls.h"

namespace cutaway {

/// As pullBackGraphCall, of a call that is a loop. Of the call in the forward this makes:
/// scan: a scan that also returns, collected, those of the values carried into its steps that derivatives read;
/// while_loop: a while_loop_stack_output, as PyTorch does, that counts its steps; behind it the results as before;
/// associative_scan: itself, since its results are what is carried.
Result<std::vector<OperandGradient>> pullBackLoop(Module& module, Node& call, GraphBuilder& builder,
                                                  const std::vector<Value>& arrived,
                                                  const std::function<bool(const Node&)>& needed,
                                                  const Rewriter& rewriter, const GraphCall& read);

}  // namespace cutaway
