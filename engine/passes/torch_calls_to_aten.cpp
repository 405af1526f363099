#include "engine/passes/torch_calls_to_aten.h"

#include "engine/ops/torch/torch_calls.h"

namespace cutaway {

Result<bool> torchCallsToAten(Module& module, Rewriter& rewriter) {
    if (!hasTorchCalls(module)) return false;
    TorchLoweringHooks hooks;
    hooks.stop = [&] { return rewriter.outOfFuel() || rewriter.cancelled(); };
    hooks.builder = [&](Graph& graph, Node& node) { return rewriter.builder(graph, &node, node); };
    hooks.done = [&](const std::string& rule, const Graph& graph, const std::string& name, NodeId id) { rewriter.record(rule, graph, name, id); };
    return lowerTorchCalls(module, hooks);
}

}  // namespace cutaway
