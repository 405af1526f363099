#pragma once
// One decision for whoever shows, runs and exports: a program serves all sizes if one can, else those of a run.
#include <functional>

#include "engine/host/plan_program.h"
#include "engine/interpret/specialize.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// A program for a run's graphs, and for which sizes it is.
struct ChosenProgram {
    std::shared_ptr<const PlannedProgram> program;
    bool allSizes = false;  // also of graphs without size symbols
    SymbolValues sizes;     // else the numbers that it is for
    std::string whyFixed;   // and why it is for these alone
};

/// Numbers for size symbols: those of `inputs` (of a forward and its backward the forward's), or without inputs the
/// example's; `known` for symbols that the inputs do not tell.
struct SizeRequest {
    const std::vector<Tensor>* inputs = nullptr;
    SymbolValues known = {};
};
/// The graphs as `plan` makes a program of them: for all sizes, or where it refuses that (or its program has no host
/// program), for the numbers. `whyFixed`: why not for all sizes, where that is known already. Where no numbers are
/// known either, kernels may still be looked at (PlannedProgram::whyNoHost). Errors: `plan`'s, other than refusals.
Result<ChosenProgram> chooseSizes(const std::vector<Snapshot>& graphs,
                                  const std::function<Result<PlannedProgram>(const std::vector<Snapshot>&)>& plan,
                                  const SizeRequest& wanted, const std::string& whyFixed = {});

/// The graph with numbers for its size symbols: those of the inputs, or without inputs its example values; `known` for
/// symbols that the inputs do not tell. `values` are these numbers. Errors: a symbol has none.
Result<Snapshot> withNumbers(const Snapshot& module, const std::vector<Tensor>* inputs, SymbolValues& values,
                             const SymbolValues& known = {});
/// Which result of the forward each placeholder of the backward is given; -1: none.
Result<std::vector<int64_t>> savedResults(const Module& forward, const Module& backward);

/// A track and the prefix of its kernels' names: "backward" and "backward/"; both empty where nothing was split.
struct ScheduledGraph {
    std::string name, prefix;
    size_t graph = 0;  // of PlannedProgram::graphs
};
std::vector<ScheduledGraph> scheduledGraphs(const CompileTrace& trace);
/// The last graph of each graph.
std::vector<Snapshot> lastGraphs(const CompileTrace& trace);

/// The program of a run, made when it is first asked for, by a window or to be run, and again for other sizes where it
/// does not serve all. Without inputs: the one that there is, if it has the known numbers. Errors: the run failed; a
/// call that nothing can compute.
Result<std::shared_ptr<const ChosenProgram>> chosenProgram(Session::State::Run& run, const SizeRequest& wanted,
                                                           const Progress& progress);

/// Errors: the run failed; whoever interprets may do without the schedule (checkPasses).
Result<void> checkLowered(const CompileTrace& trace);

}  // namespace cutaway
