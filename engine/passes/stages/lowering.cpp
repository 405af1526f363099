// What the scheduler asks of a graph.
#include "engine/passes/inline_wrappers.h"
#include "engine/passes/lowering_calls.h"
#include "engine/passes/stage.h"

namespace cutaway {
namespace {

constexpr CodeRewrite kInlineSubgraphsRewrites[] = {
    {"inline_subgraphs", "Lowering knows the calls of a graph, not the call of it",
     "higher_order.invoke_subgraph, higher_order.invoke_subgraph.default"}};

constexpr Row kRows[] = {Pass{.name = "inline_subgraphs",
                              .summary = "Writes graphs that are called where they are called",
                              .run = inlineSubgraphs,
                              .functional = false,
                              .rewrites = kInlineSubgraphsRewrites},
                         Pass{.name = "lowering_calls",
                              .summary = "Decides what the post-grad patterns have left open",
                              .run = lowerCalls,
                              .functional = false,
                              .rules = loweringCallRules}};

}  // namespace

const Stage kLowering{.name = "lowering", .rows = kRows, .required = true};

}  // namespace cutaway
