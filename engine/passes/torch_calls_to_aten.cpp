#include "engine/passes/torch_calls_to_aten.h"

#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/execution_modes.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

void sayTorchCallsThatStay(const Module& module, Rewriter& rewriter) {
    for (const Node& node : module.graph().nodes()) {
        const Refusing no(rewriter, rewriter.pass(), node);
        if (no.watched() && !isTorchCall(node)) no(KindOf{node}, " is not a call of a Python function or method");
    }
    for (const auto& [name, body] : module.subgraphs) sayTorchCallsThatStay(*body, rewriter);
}

}  // namespace

Result<bool> torchCallsToAten(Module& module, Rewriter& rewriter) {
    sayTorchCallsThatStay(module, rewriter);
    if (!hasTorchCalls(module)) return false;
    TorchLoweringHooks hooks;
    hooks.stop = [&] { return rewriter.outOfFuel() || rewriter.cancelled(); };
    hooks.builder = [&](Graph& graph, Node& node) { return rewriter.builder(graph, &node, node); };
    ExecutionModes modes(module, rewriter);
    hooks.begin = [&](Module& each) { modes.begin(each); };
    hooks.takes = [&](Node& call) { return modes.take(call); };
    hooks.autocast = [&] { return &modes.autocast(); };
    hooks.placed = [&](Node& call) { return modes.cast(call); };
    hooks.end = [&] { return modes.finish(); };
    hooks.done = [&](const std::string& rule, const Graph& graph, const std::string& name, NodeId id) {
        rewriter.record(rule, graph, name, id);
    };
    return lowerTorchCalls(module, hooks);
}

}  // namespace cutaway
