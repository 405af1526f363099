#include "engine/partition/partition.h"

#include <algorithm>

#include "engine/partition/recompute_tags.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

Result<std::vector<int>> defaultSavedValues(const JointFacts& facts) {
    // Graphs read from text do not say where differentiation began: there the forward ends with the last call that its
    // results need.
    const bool marked = std::any_of(facts.nodes.begin(), facts.nodes.end(),
                                    [](const JointNode& node) { return node.node->provenance().backward; });
    int last = -1;
    for (size_t i = 0; i + 1 < facts.nodes.size(); ++i) {
        const JointNode& node = facts.nodes[i];
        const bool forward =
            node.node->isCall() && !node.tangentsClosure &&
            (marked ? !node.node->provenance().backward : node.requiredForward() && !node.node->op().mutates());
        if (node.forwardInput || forward) last = static_cast<int>(i);
    }
    const auto inForward = [&](int i) {
        return i <= last && !(facts[i].node->isPlaceholder() && !facts[i].forwardInput) && !facts[i].tangentsClosure;
    };
    std::vector<int> saved;
    for (int i = 0; i <= last; ++i) {
        const JointNode& node = facts[i];
        const Node& value = *node.node;
        if (!inForward(i) || value.isCall("aten._assert_scalar.default")) continue;
        const auto read = [&](auto&& holds) { return std::all_of(node.users.begin(), node.users.end(), holds); };
        const bool onlyTaken =
            !node.users.empty() && read([&](int user) { return facts[user].node->isCall("operator.getitem"); });
        if (node.symbolic) saved.push_back(i);
        else if (onlyTaken || (node.multipleResults && node.recompute >= 0)) continue;
        else if (node.recompute < 0) saved.push_back(i);
        else if (value.isCall() && !isPure(value)) {
            if (facts.hasTags)
                return Error{ErrorCode::Unsupported,
                             "values are marked to be computed again, but " + value.op().name() +
                                 " has an effect, so nothing may be computed twice",
                             value.name(),
                             {"--enable partition=partitioner:min_cut"}};
        } else if (std::vector<int> sizes; true) {
            bool onlySizes = true;
            for (const int user : node.users)
                if (!inForward(user)) {
                    onlySizes = onlySizes && facts[user].symbolic;
                    if (facts[user].symbolic) sizes.push_back(user);
                }
            if (onlySizes) saved.insert(saved.end(), sizes.begin(), sizes.end());
            else if (!node.tagged()) saved.push_back(i);
        }
    }
    std::sort(saved.begin(), saved.end());
    saved.erase(std::unique(saved.begin(), saved.end()), saved.end());
    return saved;
}

Result<std::unique_ptr<Partitioner>> Partitioner::make(const Module& joint, const PassContext& context) {
    CT_TRY(PartitionOptions options, partitionOptions(context.request()));
    CT_TRY(JointFacts facts, jointFacts(joint, context.sizeHints));
    for (const int input : options.staticInputs)
        if (static_cast<size_t>(input) < facts.inputs.size())
            facts.nodes[static_cast<size_t>(facts.inputs[static_cast<size_t>(input)])].stays = true;
    const bool writes = std::any_of(facts.nodes.begin(), facts.nodes.end(), [](const JointNode& node) {
        return node.node->isCall() && node.node->op().mutates();
    });
    // As PyTorch does: marks of a graph that writes are not safe in the default partition.
    if (facts.hasTags && writes) options.defaultPartition = false;
    if (!facts.hasBackward) options.defaultPartition = true;
    settleRecomputeTags(facts, options.defaultPartition);
    return std::unique_ptr<Partitioner>(new Partitioner(joint, std::move(facts), std::move(options), context));
}

Result<SavedValues> Partitioner::choose(double budget) {
    if (!m_options.defaultPartition) return m_search.choose(budget);
    CT_TRY(std::vector<int> saved, defaultSavedValues(m_facts));
    return SavedValues{budget, std::move(saved), nullptr, "all that the backward reads (the default partition)", 0};
}

Result<SplitGraph> Partitioner::split(const SavedValues& saved) const {
    CT_TRY(SplitGraph out, splitGraph(m_joint, m_facts, saved.saved));
    if (!m_options.defaultPartition || m_facts.hasTags) computeAgainLate(*out.backward);
    // What later passes make in the backward never has the id of a node that they made in the forward.
    out.backward->graph().reserveIds(4 * m_joint.graph().idLimit() + 4096);
    raiseGetitems(out.forward->graph());
    raiseGetitems(out.backward->graph());
    return out;
}

}  // namespace cutaway
