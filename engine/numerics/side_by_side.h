#pragma once
// A graph beside its reference, and that once more in f64: each node runs as late as its value is wanted, is measured
// at once, and its value dropped after the last reader.
#include <set>

#include "engine/interpret/interpreter.h"
#include "engine/numerics/measure.h"

namespace cutaway {

/// Graphs that are ready to run (readyToRun), with their inputs.
struct ReadyGraph {
    std::shared_ptr<Module> module;
    std::vector<Tensor> inputs;
};
struct SideBySideOptions {
    JudgeOptions judge;
    AskJudge ask;           // of Judge::Plugin
    ComputeCall compute;    // of the checked graph, in its own dtypes
    double valueBytes = 0;  // that may be held in memory; what is beyond lies in a file
    std::function<void(const Node&, double fraction)> begin;
    const CancelToken* cancel = nullptr;
};
struct SideBySideEnd {
    std::string failed;               // why the graph did not run to its end
    std::set<std::string> ownDtypes;  // operators that f64 could not compute
    int64_t spilled = 0;              // bytes that lay in a file
    std::set<std::string> remarks;    // of who computes calls (SideBySideOptions::compute), in sentences
};
/// `counterparts`: by position in the order of the checked graph, the position in the reference's of the node that
/// computes the same value, or -1. `row` is called after each node of the checked graph but the output. Errors: the
/// reference does not run; Cancelled.
Result<SideBySideEnd> runSideBySide(const ReadyGraph& checked, const ReadyGraph& reference,
                                    const std::vector<int>& counterparts, const SideBySideOptions& options,
                                    const std::function<void(size_t position, const NodeNumbers&)>& row);

/// Runs a graph up to a node and gives its value; in f64 if `wide`.
Result<TensorList> valueOfNode(const ReadyGraph& graph, size_t position, bool wide, const SideBySideOptions& options);
/// What it returns; in f64 if `wide`.
Result<TensorList> resultsOf(const ReadyGraph& graph, bool wide, const SideBySideOptions& options);

}  // namespace cutaway
