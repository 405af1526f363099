// PST-3: types that no longer say what a call gives.
#include <set>

#include "engine/passes/post_grad/simple_passes.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kRule = "fake_tensor_update";

/// Sizes, dtype or device contradict each other. Strides do not count: those of a recorded graph may be chosen
/// otherwise.
bool contradicts(const ValueType& was, const ValueType& now) {
    const TensorType *a = was.tensor(), *b = now.tensor();
    if (a == nullptr || b == nullptr) return false;
    if (a->dtype != b->dtype || !(a->device == b->device)) return true;
    return allInts(a->sizes) && allInts(b->sizes) && !(a->sizes == b->sizes);
}

Result<bool> updateTypes(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::set<NodeId> updated;
    for (Node& node : graph.nodes()) {
        if (!node.isCall()) continue;
        const Refusing refuse(rewriter, kRule, node);
        if (node.op().isOpaque()) {
            refuse(node.op().name(), " has no row in the op tables, so that its type cannot be found anew");
            continue;
        }
        bool readsUpdated = false;
        for (const Node* input : node.inputs()) readsUpdated |= updated.contains(input->id());
        auto inferred = inferCall(node.op(), node.args());
        if (!inferred) refuse("its type cannot be found anew: ", inferred.error().message);
        else if (inferred->isOpaque() || node.type().isOpaque()) refuse("its type is not known");
        else if (readsUpdated ? sameType(*inferred, node.type()) : !contradicts(node.type(), *inferred))
            refuse("its operands give the type that it has, ", node.type());
        else if (rewriter.begin(kRule, node, "its operands have changed since its type was found") != Go::Yes)
            return changed;
        else {
            graph.setType(node, std::move(*inferred));
            updated.insert(node.id());
            changed = true;
        }
    }
    return changed;
}

}  // namespace

Result<bool> updateFakeTensors(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, updateFakeTensors(*body, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool outer, updateTypes(module.graph(), rewriter));
    return changed || outer;
}

}  // namespace cutaway
