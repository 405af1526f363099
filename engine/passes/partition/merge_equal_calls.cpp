#include "engine/passes/partition/merge_equal_calls.h"

#include <unordered_map>
#include <vector>

#include "engine/ir/data_dependent.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/partition/joint_facts.h"
#include "engine/rewrite/refusing.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

struct HashOf {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
};

bool mayMerge(const Node& node, const StorageRoots& roots, const Refusing& no) {
    if (!node.isCall()) return no("it is not a call");
    if (node.is(Tag::Random)) return no("it draws random numbers");
    if (node.op().packet() == "aten.empty") return no("it has no values yet");
    if (!isPure(node)) return no("it does more than make a value");
    if (roots.isOutput(node)) return no("it shares memory with a returned value");
    if (sizeDependsOnData(node.op(), node.args())) return no("its size depends on data");
    return true;
}

/// By node id, whether a gradient depends on it.
std::vector<bool> neededByGradients(const Graph& graph, size_t forwardOutputs) {
    std::vector<bool> needed(graph.idLimit(), false);
    std::vector<const Node*> open;
    const auto need = [&](const Node* node) {
        if (node == nullptr || needed[index(node->id())]) return;
        needed[index(node->id())] = true;
        open.push_back(node);
    };
    const auto returned = graph.outputs();
    for (size_t i = forwardOutputs; i < returned.size(); ++i) need(returned[i].node());
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        for (const Node* input : node->inputs()) need(input);
    }
    return needed;
}

/// Merges within two sides, which `ofOther` tells apart by node id; empty: there is one side.
Result<bool> mergeWithinSides(Graph& graph, Rewriter& rewriter, const std::vector<bool>& ofOther) {
    const StorageRoots roots(graph);
    struct First {
        Node* node;
        int region;
    };
    std::unordered_map<Hash128, First, HashOf> firstsOf[2];  // by side; lookups only, never iterated
    int region = 0;                                          // grows with each call that writes
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (node->isCall() && node->op().mutates()) ++region;
        const Refusing no(rewriter, "equal call", *node);
        if (!mayMerge(*node, roots, no)) continue;
        auto& firsts = firstsOf[!ofOther.empty() && ofOther[index(node->id())]];
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

}  // namespace

Result<bool> mergeEqualCalls(Module& module, Rewriter& rewriter) {
    return mergeWithinSides(module.graph(), rewriter, {});
}

Result<bool> mergeEqualCallsBySide(Module& module, Rewriter& rewriter) {
    if (!has(rewriter.request().pytorch, ReleaseChange::SidesMergedApart)) return mergeEqualCalls(module, rewriter);
    Graph& graph = module.graph();
    CT_TRY(const size_t forwardOutputs, countForwardOutputs(module));
    return mergeWithinSides(graph, rewriter, neededByGradients(graph, forwardOutputs));
}

}  // namespace cutaway
