#pragma once
// Checked runs (engine/numerics) in the worker process. What the rows say comes while it works, so that a crash loses
// none; values stay in the worker.
#include "cutaway/gradients.h"
#include "engine/numerics/side_by_side.h"
#include "engine/runtime/checked_plugins.h"
#include "engine/runtime/worker.h"

namespace cutaway {

struct CheckedOptions {
    JudgeOptions judge;
    CheckedPlugins plugins;
    double timeoutSeconds = 0;  // 0 = no limit
    int64_t memoryBytes = 0;    // limit of the worker's address space; 0 = what the machine has left
};
/// runSideBySide() in the worker. Graphs must be complete: no recipes (withConstants). Errors: those, and a worker that
/// crashed, hung or ran out of memory, with the node.
Result<SideBySideEnd> runChecked(const ReadyGraph& checked, const ReadyGraph& reference,
                                 const std::vector<int>& counterparts, const CheckedOptions& options,
                                 const std::function<void(size_t position, const NodeNumbers&)>& row,
                                 const Progress& progress);
/// valueOfNode() there.
Result<std::vector<Tensor>> readValue(const ReadyGraph& graph, size_t position, bool wide,
                                      const CheckedOptions& options, const Progress& progress);
/// What a graph returns, and what it returns in f64.
struct BothResults {
    std::vector<Tensor> plain, wide;
};
Result<BothResults> readResults(const ReadyGraph& graph, const CheckedOptions& options, const Progress& progress);

/// checkGradients() of a joint graph there, as gradient_check.h has it.
Result<GradientCheck> runGradientCheck(const ReadyGraph& joint, const GradientCheckOptions& options,
                                       const Progress& progress);

/// The worker's side: answers what the functions above ask.
Result<Message> answerChecked(const Message& request, StatusPage& board);

}  // namespace cutaway
