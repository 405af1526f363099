#pragma once
// Operators that take graphs: cond, while_loop (in training while_loop_stack_output), map, scan, associative_scan,
// invoke_subgraph and the wrappers that only set a mode around a graph (spec: input-formats §4.6). The interpreter runs
// the graphs; nothing is expanded.
#include <functional>

#include "engine/ir/module.h"
#include "engine/ops/eval.h"

namespace cutaway {

/// True for operators of the list above.
bool isHigherOrder(std::string_view opName);

/// How it runs its graphs: "cond", "while_loop", "while_loop_stack_output", "map", "scan", "associative_scan", or "run"
/// for one graph, once; empty for other operators.
std::string_view graphKindOf(std::string_view opName);

/// Runs a subgraph with these inputs, one per placeholder.
using RunGraph = std::function<Result<std::vector<Tensor>>(const Module& body, const std::vector<Tensor>& inputs)>;

/// The results of a higher-order call in `module`. Errors: operands of another kind or count, a subgraph that is
/// missing, whatever `run` says.
Result<TensorList> evaluateHigherOrder(const Module& module, const Node& call, const ValueSource& values,
                                       const RunGraph& run);

}  // namespace cutaway
