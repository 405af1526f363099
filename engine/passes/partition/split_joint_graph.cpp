#include "engine/passes/partition/split_joint_graph.h"

#include "engine/partition/partition.h"

namespace cutaway {

Result<std::vector<std::shared_ptr<Module>>> splitJointGraph(const Module& module, Rewriter& rewriter) {
    CT_TRY(const std::unique_ptr<Partitioner> partitioner, Partitioner::make(module, rewriter.context()));
    CT_TRY(const SavedValues saved, partitioner->choose(partitioner->options().budget));
    CT_TRY(SplitGraph split, partitioner->split(saved));
    rewriter.record("partition", module.graph(), module.graph().outputNode()->name(), module.graph().outputNode()->id(),
                    saved.attempt);
    return std::vector<std::shared_ptr<Module>>{std::move(split.forward), std::move(split.backward)};
}

}  // namespace cutaway
