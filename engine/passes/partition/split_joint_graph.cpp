#include "engine/passes/partition/split_joint_graph.h"

#include "engine/partition/explain_partition.h"

namespace cutaway {

namespace {

void sayOfBody(const Module& body, Rewriter& rewriter) {
    for (const Node& node : body.graph().nodes())
        rewriter.refuse("partition", node, "it is computed where its body is called");
    for (const auto& [name, inner] : body.subgraphs) sayOfBody(*inner, rewriter);
}

}  // namespace

Result<std::vector<std::shared_ptr<Module>>> splitJointGraph(const Module& module, Rewriter& rewriter) {
    CT_TRY(const std::unique_ptr<Partitioner> partitioner, Partitioner::make(module, rewriter.context()));
    CT_TRY(const SavedValues saved, partitioner->choose(partitioner->options().budget));
    CT_TRY(SplitGraph split, partitioner->split(saved));
    for (const Node& node : module.graph().nodes())
        if (rewriter.watches(node) && !node.isOutput())
            rewriter.refuse("partition", node,
                            explainSide(partitioner->facts(), saved, sidesOf(partitioner->facts(), split),
                                        partitioner->facts().at(node)));
    for (const auto& [name, body] : module.subgraphs) sayOfBody(*body, rewriter);
    rewriter.record("partition", module.graph(), module.graph().outputNode()->name(), module.graph().outputNode()->id(),
                    saved.attempt);
    return std::vector<std::shared_ptr<Module>>{std::move(split.forward), std::move(split.backward)};
}

}  // namespace cutaway
