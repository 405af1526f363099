#pragma once
// Writes Python's calls - torch.nn.functional.relu(x), x.view(2, 3), x + y, x[:, 0] - as calls of ATen operators.
// Dynamo's graphs consist of such calls; the text parser keeps them as opaque ops. Leaves alone: calls of modules
// (self.fc(x)), whose code is not in the graph, and operators of other libraries.
#include <functional>

#include "engine/ir/module.h"
#include "engine/ops/autocast.h"

namespace cutaway {

/// The operator that higher_order.with_effects(token, operator, arguments…) runs for what it does beside its results;
/// null for other calls, and where no row says what the operator does.
const Op* effectOf(const Node& node);

/// Whether this is such a call: of a function of torch.*, operator.*, math.* or builtins.*, of a method, a subscript of
/// a tensor or of a size, or an operator with its effect's token.
bool isTorchCall(const Node& node);
bool hasTorchCalls(const Module& module);
/// Whether it is a lowering that PyTorch's compiler registered (torch__inductor_fx_passes_mkldnn_fusion_fn): the text
/// has the name of a Python function, and not the operator that it computes. Those whose names say it have rows.
bool isNamelessLowering(const Op& op);

/// Writes the call as ATen calls through `builder`. The result is what the call evaluates to: a node, or a value that
/// is known without running anything (the number x.size(0), the dtype x.dtype, a list of such or of nodes, None).
/// `module`: where literal data (torch.tensor([1, 2])) becomes a constant; null = its type only.
/// `autocast`: the precision of the region that the call stands in.
/// Errors name the call and what to do instead; the builder may then have made nodes that nobody reads.
Result<Argument> resolveTorchCall(GraphBuilder& builder, const Op& op, std::vector<Argument> args,
                                  NamedArguments keywords, Module* module = nullptr,
                                  const AutocastState* autocast = nullptr);

/// Whether the function or method has a parameter of this name ("self" is known as "input" too). False if nothing is
/// known.
bool torchCallTakes(const Op& op, std::string_view param);

/// One way in which a function or method may be called. Its schema lives as long as the program.
struct TorchSignature {
    const Schema* schema = nullptr;
    const Op* aten = nullptr;  // the overload that it means; null for functions that are written here
};
/// In the order in which Python tries them; empty if the function is unknown.
std::vector<TorchSignature> torchSignatures(const Op& op);
/// Position of the parameter that a keyword means (axis is dim, input is self); -1 if there is none.
int torchParameter(const TorchSignature& signature, std::string_view keyword);

/// A call's arguments by parameter, defaults filled in, so that two spellings of one call are one.
struct BoundTorchCall {
    const Schema* signature = nullptr;
    std::vector<Argument> args;
};
/// Nothing if the arguments fit no signature.
std::optional<BoundTorchCall> bindTorchCall(const Op& op, const std::vector<Argument>& args,
                                            const NamedArguments& keywords);

/// Type of such a call's value, from its arguments' types. A value known without running is a SymType or a tuple of
/// them where it is a number or numbers, else opaque.
Result<ValueType> inferTorchCall(const Op& op, const std::vector<Argument>& args, const NamedArguments& keywords);

/// For whoever watches a module's calls while they are written as ATen calls.
struct TorchLoweringHooks {
    std::function<bool()> stop = [] { return false; };  // asked before each call
    std::function<GraphBuilder(Graph&, Node&)> builder = [](Graph& graph, Node& node) {
        return GraphBuilder(graph, &node);
    };
    std::function<void(const std::string& rule, const Graph& graph, const std::string& name, NodeId id)> done =
        [](const auto&...) {};
    // Around each graph, bodies before the graph that names them:
    std::function<void(Module& module)> begin = [](Module&) {};
    std::function<Result<void>()> end = [] { return Result<void>(); };
    std::function<bool(Node& call)> takes = [](Node&) {
        return false;
    };  // a call that it understands itself, and may erase
    std::function<const AutocastState*()> autocast = [] { return nullptr; };  // of the place that has been reached
    std::function<Result<void>(Node& call)> placed = [](Node&) {
        return Result<void>();
    };  // each ATen call, when its operands are final
};
/// Replaces every such call of the module and its subgraphs; a node keeps its id and name where one ATen call takes its
/// place. True if anything changed. On errors the module is half done.
Result<bool> lowerTorchCalls(Module& module, const TorchLoweringHooks& hooks = {});

}  // namespace cutaway
