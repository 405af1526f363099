#pragma once
// The graphs of a run that can be held against each other, one after the other.
#include <unordered_map>

#include "engine/libraries/plugin_rows.h"
#include "engine/numerics/side_by_side.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// Whether a graph has values as it stands: some calls have them when a pass (`vmap`, `forward_ad`) has rewritten them.
bool hasValues(const Module& module);

/// A graph of the run, as a whole program, and the first one before it that computes the same results.
struct CheckedGraph {
    Place place, referencePlace;
    Snapshot graph, reference;
    std::unordered_map<NodeId, NodeId> counterparts;  // from `graph` to `reference`
    std::map<NodeId, PluginLibrary> libraries = {};   // of plugins, by the call of `graph` that each computes
};

/// Goes through the changed steps of a run. Differentiation adds results, so what comes behind it is held against the
/// joint graph; where the graph as it was opened has no values, the first one that has them stands for it.
class CheckedGraphs {
  public:
    CheckedGraphs(const Session::State& state, const CompileTrace& trace, RunId run);
    /// The graph as it was opened, against itself.
    const CheckedGraph& current() const { return m_current; }
    /// The graph after the next changed step; false behind the last, and at a failed one.
    Result<bool> next();
    /// The graph at a place. Walks there from the beginning, so it is called once, instead of next().
    Result<CheckedGraph> at(const Place& place, const CancelToken* cancel);

  private:
    Result<CheckedGraph> after(const Step& step, const Snapshot& now) const;
    void moveOn(CheckedGraph graph);

    const Session::State& m_state;
    const CompileTrace& m_trace;
    RunId m_run;
    size_t m_next = 0;
    CheckedGraph m_current;
    // The reference of later graphs, and of the last graph's nodes the counterparts in it:
    Snapshot m_reference;
    Place m_referencePlace;
    std::unordered_map<NodeId, NodeId> m_toReference;
};

/// Graph and reference with inputs, ready to run. `counterparts`: by a node's position, that in the reference or -1.
struct ReadyPair {
    ReadyGraph graph, reference;
    std::vector<int> counterparts;
};
Result<ReadyGraph> readyGraph(const Snapshot& graph, const Session::State& state, const std::string& inputsFile,
                              const Progress& progress);
Result<ReadyPair> readyPair(const CheckedGraph& checked, const Session::State& state, const std::string& inputsFile,
                            const Progress& progress);

}  // namespace cutaway
