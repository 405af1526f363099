#pragma once
// The way from the nodes of any graph of a run to the kernels that compute them, and back.
#include "cutaway/session.h"

namespace cutaway {

/// A call of the compiled program: what a kernel, a library or a reference kernel computes at once.
struct KernelCall {
    std::string graphName;          // "forward", "backward"; empty of a run for inference
    std::string kernel;             // "kernel3", of a training run "backward/kernel3"; empty: no generated code
    std::string kind;               // "pointwise", "reduction", "library: mm (oneDNN)", "reference: aten.x"
    std::vector<NodeKey> nodes;     // that it computes, in the order of the last graph
    std::vector<NodeKey> replaced;  // nodes of earlier graphs in whose place these stand
    std::vector<NodeKey> buffers;   // of a kernel: whose values lie in b0, b1, ... of its code
    double microseconds = 0;        // as last measured; 0 until timed
};
/// In the order in which they run, the forward's before the backward's. Errors: the run failed; a call that nothing can
/// compute.
Result<std::vector<KernelCall>> kernelCalls(Session& session, RunId run, const Progress& progress = {});

}  // namespace cutaway
