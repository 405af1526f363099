#pragma once
// How a graph of a run is called with the arguments of the graph as it was opened. Freezing makes constants of
// arguments that it takes for weights, in graphs that do not say which are: those graphs take fewer (spec: freezing
// §1.10).
#include "engine/session/session_state.h"

namespace cutaway {

/// A graph and the values of its user inputs, in order.
struct CalledGraph {
    Snapshot graph;
    std::vector<Tensor> user;
};

/// Positions, among the inputs of `opened`, of those that `graph` still takes: PyTorch's preserved argument indices.
std::vector<size_t> preservedArguments(const Module& opened, const Module& graph);

/// What runs when `graph` is called as `opened` is, with one value in `user` for each of its user inputs (others may
/// follow: tangents). Values for arguments that are constants of `graph` become the values of these, so that the
/// results are those of the graph as opened; the graph itself is returned where there are none.
Result<CalledGraph> calledWith(const Module& opened, const Snapshot& graph, std::vector<Tensor> user);

/// The same with the values of a file, else the samples, else random ones (chooseInputs), and random ones for user
/// inputs of `graph` behind those: the gradients that a joint graph is given. The result has a tensor for every input.
Result<CalledGraph> calledFor(const Snapshot& graph, const Session::State& state, const std::string& path);

}  // namespace cutaway
