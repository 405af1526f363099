#pragma once
// Forward and backward of a training run as one computation: what the first hands to the second.
#include "engine/session/execution.h"

namespace cutaway {

/// Results of a forward that are inputs are saved as they were: the forward may have written to them at its end.
void keepInputs(const Module& forward, const std::vector<Tensor>& bound, std::vector<Tensor>& outputs);
/// In the strides that the backward's input has; other layouts are copied to it (A4.4).
Tensor laidOut(const Tensor& tensor, const Node& placeholder);

/// While it lasts, what the compiled forward saves for these inputs stays in the process that runs its backward.
Result<CpuProgram::Hold> holdHalves(Session::State::Run& run, const std::vector<Tensor>& inputs,
                                    const Progress& progress);

/// Runs both compiled halves of a run that was split. `inputs`: those of the joined graph (joinGraphs), the forward's
/// and then what else the backward takes; returned is what that graph returns.
Result<Execution> runCompiledHalves(Session::State::Run& run, const std::vector<Tensor>& inputs,
                                    const RunOptions& options, const Progress& progress);

}  // namespace cutaway
