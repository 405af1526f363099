#pragma once
// The two ends of a run in another process. Parent and worker exchange two files in a folder of the parent's: the request
// (plan, tensors) and the reply (outputs, times, or an error). Whatever happens to the worker is an Error in the parent.
#include "engine/runtime/cpu/executor.h"
#include "engine/support/process.h"

namespace cutaway {

struct WorkerOptions {
    int repeat = 1, threads = 0;
    double timeoutSeconds = 60;
    int64_t memoryBytes = 0;  // address space; 0 = no limit
};
/// Starts cutaway-worker, waits for it, reads its reply.
Result<ExecutionResult> runInWorker(const Plan& plan, const std::vector<Tensor>& given, const std::string& library, const WorkerOptions& options,
                                    const Progress& progress = {});
/// main() of the worker: `cutaway-worker run REQUEST REPLY`. Exit status 0 if a reply was written, even one with an error.
int workerMain(int argc, char** argv);

}  // namespace cutaway
