#pragma once
// Derivatives of calls that run graphs of the module: cond, map_impl, while_loop, scan and associative_scan. A
// derivative is a call of graphs that are differentiated themselves.
#include "engine/autograd/tangent_rules.h"

namespace cutaway {

/// A call of one of these; of other calls of graphs nothing is known here.
bool runsGraphs(const Node& call);

/// Gradients of the operands that are `needed`, from those that have `arrived` at the results (null for none). What the
/// forward has computed within a step is computed again; the values that a loop carries into its steps are kept, for
/// which the call in the forward returns more than before (loops_backward.cpp); so is what steps of scan and map draw.
/// Errors: other graphs that draw random numbers, results of unknown types, loops that carry what is not a tensor.
struct OperandGradient {
    Node* operand;
    Value gradient;
};
Result<std::vector<OperandGradient>> pullBackGraphCall(Module& module, Node& call, GraphBuilder& builder,
                                                       const std::vector<Value>& arrived,
                                                       const std::function<bool(const Node&)>& needed,
                                                       const Rewriter& rewriter);

/// Tangents of the results, from those of the operands. Errors: as above.
Result<Tangents> pushGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                               const TangentCall::Lookup& tangentOf, const Rewriter& rewriter);

}  // namespace cutaway
