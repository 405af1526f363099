#pragma once
// What the forward of a loop keeps of its steps for a backward.
#include "engine/autograd/graph_call.h"

namespace cutaway {

/// Result `position` of a call of graphs, which gets a getitem behind it where it has none.
Node* resultOfCall(Node& call, size_t position);

/// Random numbers that a step has drawn, as its derivative reads them: result `item` of a call of the step.
struct Drawn {
    NodeId call;
    size_t item;
    Node* input;  // of the step backwards, in their place
};
/// Takes the calls that draw out of a step backwards. The inputs for what they drew come before `place`.
std::vector<Drawn> takeOutDraws(Module& step, Node& place);

/// A scan or map returns, collected, the values carried into its steps at these places, too, and what its steps have
/// drawn: nodes of the forward.
Result<std::vector<Node*>> keepCollected(Module& module, Node& call, const GraphCall& read,
                                         const std::vector<size_t>& carried, const std::vector<Drawn>& drawn,
                                         const Rewriter& rewriter);

/// The same of a cond: its branches return what each has drawn, zeros for what the others have. The branches
/// backwards get inputs for the others' draws, so that all take the same.
Result<std::vector<Node*>> keepDrawnByBranches(Module& module, Node& call, const GraphCall& read,
                                               const std::vector<std::vector<Drawn>>& drawn,
                                               const std::vector<Module*>& backward, const Rewriter& rewriter);

/// The while_loop becomes a while_loop_stack_output, which returns what each step gives to the next one, stacked, and
/// counts them; where there was no step it returns what was carried in, as PyTorch's does. Whoever read the loop's
/// results reads the last of each stack. What a step has drawn is given to the next one, too, which does not read it.
struct StackedSteps {
    std::vector<Node*> stacks;  // one for each value that is carried on
    std::vector<Node*> drawn;   // stacks of what the steps have drawn
    Node* count = nullptr;      // the number of steps, an i64 without dims
    SymInt rows;                // of the stacks
};
Result<StackedSteps> keepInWhileLoop(Module& module, Node& call, const GraphCall& read, const std::vector<Drawn>& drawn,
                                     const Rewriter& rewriter);

}  // namespace cutaway
