#pragma once
// The reference interpreter in the worker process, where a crash of a kernel or a lack of memory does no harm.
#include <map>

#include "engine/interpret/interpret.h"
#include "engine/runtime/worker.h"
#include "engine/support/fault_points.h"

namespace cutaway {

/// Results of random ops, by the name of the node.
using Draws = std::map<std::string, TensorList>;

struct ReferenceOptions {
    int repeat = 1;             // timed runs; the last one gives the results
    double timeoutSeconds = 0;  // 0 = no limit
    int64_t memoryBytes = 0;    // limit of the worker's address space; 0 = what the machine has left
    bool written = false;       // also gives what became of the inputs that the graph writes to
    bool watched = false;       // the same, and what random ops drew
    /// Values for random ops instead of drawing: of the candidates of a node the first of the same shapes. Not null if
    /// watched.
    const std::map<std::string, std::vector<TensorList>>* candidates = nullptr;
    /// What tests ask for at "op@before" or "op@after" acts in this run (support/fault_points.h).
    FaultSide faultSide = FaultSide::None;
};
struct ReferenceRun {
    std::vector<Tensor> outputs;       // as returned by the graph; undefined for None
    std::vector<double> milliseconds;  // of every run, measured in the worker
    Draws draws;
    std::vector<Tensor> inputs;  // as the run leaves them; undefined where the graph does not write
};
/// interpret() in the worker. Errors: its own; the worker crashed, hung or ran out of memory, with the node.
Result<ReferenceRun> runReference(const Module& module, const std::vector<Tensor>& inputs,
                                  const ReferenceOptions& options = {}, const Progress& progress = {});

/// The worker's side: answers what runReference() asks.
Result<Message> answerReference(const Message& request, StatusPage& board);

}  // namespace cutaway
