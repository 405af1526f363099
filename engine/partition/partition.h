#pragma once
// The joint graph's partition into forward and backward (spec: autograd part B): what the steps, the command line and
// the window ask for.
#include "engine/partition/saved_values.h"
#include "engine/partition/split_graph.h"

namespace cutaway {

/// A joint graph that is to be split, for one budget after another. The graph must stay as it is meanwhile.
class Partitioner {
  public:
    /// Errors: options that the request has wrong; a graph that is not a joint graph.
    static Result<std::unique_ptr<Partitioner>> make(const Module& joint, const PassContext& context);

    /// What the forward saves with the request's options and this budget: the default partition's choice, the minimum
    /// cut's, or, of a graph whose backward reads nothing, nothing.
    Result<SavedValues> choose(double budget);
    /// SavedValuesSearch::allRecomputed; 0 of a default partition.
    Result<double> allRecomputed() { return m_options.defaultPartition ? 0.0 : m_search.allRecomputed(); }
    /// The two graphs.
    Result<SplitGraph> split(const SavedValues& saved) const;

    const JointFacts& facts() const { return m_facts; }
    const PartitionOptions& options() const { return m_options; }

  private:
    Partitioner(const Module& joint, JointFacts facts, PartitionOptions options, const PassContext& context)
        : m_joint(joint),
          m_facts(std::move(facts)),
          m_options(std::move(options)),
          m_context(context),
          m_search(m_facts, m_options, m_context.request().parity, m_context) {}

    const Module& m_joint;
    JointFacts m_facts;
    PartitionOptions m_options;
    PassContext m_context;
    SavedValuesSearch m_search;
};

/// Everything that the backward reads of the forward, as far as the forward may hand it over. Errors: an impure call
/// among values that are marked to be computed again.
Result<std::vector<int>> defaultSavedValues(const JointFacts& facts);

}  // namespace cutaway
