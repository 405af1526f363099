#pragma once
// Two graphs on one set of inputs: what bisecting and the check of numbers share.
#include "engine/minify/bisect.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// Values for the graph's inputs: the file's or the samples first, then random ones for what they do not have, which are
/// the gradients that a joint graph is given.
Result<std::vector<Tensor>> valuesFor(const Module& graph, const Session::State& state, const std::string& path);

/// Bad where a result is of another dtype or shape or further off than `tolerance` of the largest expected value (or the
/// dtype's own tolerance). Numbers of results must agree.
Verdict compareOutputs(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance);

}  // namespace cutaway
