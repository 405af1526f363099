#pragma once
// Derivatives of calls that run graphs of the module: cond and map_impl backwards, while_loop and scan forwards as
// well. A derivative is a call of the same kind, of graphs that are differentiated themselves.
#include "engine/autograd/tangent_rules.h"

namespace cutaway {

/// A call of cond, map_impl, while_loop or scan; of other calls of graphs nothing is known here.
bool runsGraphs(const Node& call);

/// Gradients of the operands that are `needed`, from those that have `arrived` at the results (null for none). What the
/// forward has computed within its graphs is computed again. Errors: loops, graphs that draw random numbers, results of
/// unknown types.
struct OperandGradient {
    Node* operand;
    Value gradient;
};
Result<std::vector<OperandGradient>> pullBackGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                                                       const std::vector<Value>& arrived,
                                                       const std::function<bool(const Node&)>& needed,
                                                       const Rewriter& rewriter);

/// Tangents of the results, from those of the operands. Errors: as above, but for loops.
Result<Tangents> pushGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                               const TangentCall::Lookup& tangentOf, const Rewriter& rewriter);

}  // namespace cutaway
