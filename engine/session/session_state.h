#pragma once
// What a session holds.
#include <map>
#include <optional>
#include <vector>

#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

struct Session::State {
    struct Run {
        CompileTrace trace;
    };
    std::optional<OpenedFile> file;
    Snapshot input;
    std::vector<Tensor> sampleInputs;  // of the file, when all of them are tensors
    ModelInfo info;
    std::vector<Run> runs;

    Result<const Run*> run(RunId id) const;
    Result<Snapshot> snapshot(const Place& place, const CancelToken* cancel = nullptr) const;
};

}  // namespace cutaway
