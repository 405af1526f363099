#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Whether convolutions compute with channels last, and the sentence that says why (spec: freezing §3.1).
struct LayoutDecision {
    bool channelsLast = false;
    std::string why;
};
LayoutDecision decideLayout(const Graph& graph, const CompileRequest& request);

/// If so, copies the weights of convolutions into that layout (the copies fold away with the weights) and keeps the
/// strides of what is returned or read by position (spec: freezing §3.2).
Result<bool> convertWeightsToChannelsLast(Module& module, Rewriter& rewriter);

}  // namespace cutaway
