#pragma once
// What a session holds.
#include <map>
#include <optional>
#include <vector>

#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/passes/pass_runner.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/session/body_ids.h"

namespace cutaway {

struct Session::State {
    struct Run {
        CompileTrace trace;
        std::optional<CpuProgram> cpu;           // built on first use
        std::map<std::string, int64_t> cpuSizes; // numbers of the size symbols that it was built for
        std::vector<double> kernelMicroseconds;  // of the last compiled run, in the order of its kernels
    };
    std::optional<OpenedFile> file;
    Snapshot input;
    std::vector<Tensor> sampleInputs;  // of the file, when all of them are tensors
    std::string noSamples;             // why there are none, if the file has some that cannot be used
    ModelInfo info;
    std::vector<Run> runs;
    /// The latest graphs between two rewrites: a place is asked for by its difference, its text and its nodes.
    mutable std::vector<std::pair<Place, Snapshot>> replayed;
    BodyIds bodies;

    Result<const Run*> run(RunId id) const;
    Result<Run*> run(RunId id);
    Result<RunReport> execute(RunId id, const RunOptions& options, const Progress& progress);
    Result<Snapshot> snapshot(const Place& place, const CancelToken* cancel = nullptr) const;
};

}  // namespace cutaway
