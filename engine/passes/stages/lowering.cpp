// From the graph that post-grad leaves to one whose every call the schedule takes.
#include "engine/autograd/expand.h"
#include "engine/passes/inline_wrappers.h"
#include "engine/passes/lowering_calls.h"
#include "engine/passes/operator_rewrites.h"
#include "engine/passes/post_grad/quantized_calls.h"
#include "engine/passes/stage.h"
#include "engine/passes/switch_to_cond.h"

namespace cutaway {
namespace {

constexpr CodeRewrite kInlineSubgraphsRewrites[] = {
    {"inline_subgraphs", "The schedule cannot take a call that runs a whole graph",
     "higher_order.invoke_subgraph, higher_order.invoke_subgraph.default"}};

constexpr Row kLoweringRows[] = {
    Pass{.name = "inline_subgraphs",
         .summary = "Replaces the call of a graph by the calls in it",
         .run = inlineSubgraphs,
         .functional = false,
         .rewrites = kInlineSubgraphsRewrites},
    Pass{.name = "lower_switch",
         .summary = "Writes torch.switch as conds, in a graph that capture has not seen",
         .run = switchToCond,
         .functional = false,
         .starts = "call"},
    Pass{.name = "decompose_kept",
         .summary = "Decomposes the operators that the release of PyTorch hands to its kernels whole",
         .run = decomposeKept,
         .functional = false,
         .operatorRewrites = keptRewrites},
    Pass{.name = "lowering_calls",
         .summary = "Decides how to compute the calls that post-grad patterns made",
         .run = lowerCalls,
         .functional = false,
         .rules = loweringCallRules},
    Pass{.name = "quantized_functions",
         .summary = "Turns calls of PyTorch's quantized lowering functions back into operators",
         .run = callQuantizedOperators,
         .functional = false,
         .rules = quantizedFunctionCallRules}};

}  // namespace

const Stage kLowering{.name = "lowering", .rows = kLoweringRows, .required = true};

}  // namespace cutaway
