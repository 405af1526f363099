#include "engine/passes/partition/merge_equal_calls.h"

#include <unordered_map>

#include "engine/ir/data_dependent.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

struct HashOf {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
};

bool mayMerge(const Node& node, const StorageRoots& roots, const Refusing& no) {
    if (!node.isCall()) return no("it is no call");
    if (node.is(Tag::Random)) return no("it draws random numbers");
    if (node.op().packet() == "aten.empty") return no("it has no values yet");
    if (!isPure(node)) return no("it does more than make a value");
    if (roots.isOutput(node)) return no("it shares memory with a returned value");
    if (sizeDependsOnData(node.op(), node.args())) return no("its size depends on data");
    return true;
}

}  // namespace

Result<bool> mergeEqualCalls(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    const StorageRoots roots(graph);
    struct First {
        Node* node;
        int region;
    };
    std::unordered_map<Hash128, First, HashOf> firsts;  // lookups only, never iterated
    int region = 0;                                     // grows with each call that writes
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (node->isCall() && node->op().mutates()) ++region;
        const Refusing no(rewriter, "equal call", *node);
        if (!mayMerge(*node, roots, no)) continue;
        const auto [place, isNew] = firsts.try_emplace(contentFingerprint(*node), First{node, region});
        if (isNew) {
            no("no earlier call is equal");
            continue;
        }
        if (place->second.region != region) {
            no.about(place->second.node, "a call that writes stands between it and ", *place->second.node);
            place->second = {node, region};
            continue;
        }
        const Go go = rewriter.begin("equal call", *node, "an earlier call computes the same");
        if (go == Go::Stop) return changed;
        if (go == Go::Skip) continue;
        graph.replaceUses(*node, *place->second.node);
        graph.erase(*node);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
