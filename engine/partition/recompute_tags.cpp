#include "engine/partition/recompute_tags.h"

#include <algorithm>
#include <map>

namespace cutaway {
namespace {

constexpr int8_t kMustSave = -1;

void saveRegionBoundaries(JointFacts& facts, bool defaultPartition) {
    for (JointNode& node : facts.nodes) {
        const auto readBy = [&](auto&& holds) {
            return std::any_of(node.users.begin(), node.users.end(), [&](int user) { return holds(facts[user]); });
        };
        if (node.tagged()) {
            if (readBy([&](const JointNode& user) {
                    return user.tagged() && user.region > node.region && node.region > 0;
                }))
                node.recompute = kMustSave;
            continue;
        }
        if (!defaultPartition || node.region > 0 || !readBy([](const JointNode& user) { return user.tagged(); }))
            continue;
        const bool partOfMarked =
            node.node->isCall("operator.getitem") && !node.inputs.empty() && facts[node.inputs.front()].region > 0;
        if (!partOfMarked) node.recompute = kMustSave;
    }
}

/// The results of the call, through getitem.
void saveResults(JointFacts& facts, int call) {
    for (const int user : facts[call].users) {
        JointNode& result = facts.nodes[static_cast<size_t>(user)];
        if (!result.node->isCall("operator.getitem")) continue;
        saveResults(facts, user);
        if (!result.multipleResults) result.recompute = kMustSave;
    }
}

/// Saves what the forward copies into an input that the backward also writes to, lest it be recomputed from new values.
void saveWrittenTwice(JointFacts& facts) {
    std::map<const Node*, bool> backwardWrites;
    for (size_t i = facts.nodes.size() - 1; i-- > 0;) {
        const Node& node = *facts.nodes[i].node;
        if (!node.isCall("aten.copy_.default")) break;  // they all stand at the end
        const Node* target = node.arg(0).node();
        if (node.provenance().backward) backwardWrites[target] = true;
        else if (const Node* source = node.arg(1).node(); source && backwardWrites.contains(target))
            facts.nodes[static_cast<size_t>(facts.at(*source))].recompute = kMustSave;
    }
}

}  // namespace

void settleRecomputeTags(JointFacts& facts, bool defaultPartition) {
    for (JointNode& node : facts.nodes)
        if (node.tagged() && node.drawsAnew) node.recompute = kMustSave;
    if (facts.hasTags) saveRegionBoundaries(facts, defaultPartition);
    for (size_t i = 0; i < facts.nodes.size(); ++i) {
        JointNode& node = facts.nodes[i];
        if (node.collective && !node.tagged()) node.recompute = kMustSave;
        const bool effect = node.node->isCall() && node.node->op().packet() == "higher_order.with_effects";
        if (effect && !node.tagged() && !node.requiredBackward) saveResults(facts, static_cast<int>(i));
    }
    saveWrittenTwice(facts);
}

}  // namespace cutaway
