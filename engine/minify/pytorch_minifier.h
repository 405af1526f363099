#pragma once
// PyTorch's minifier, query for query (spec: debug-minify-export 2.1 to 2.5): two strategies at falling granularities,
// and from the top after each success.
#include "engine/minify/candidate.h"

namespace cutaway {

struct PyTorchMinifierOptions {
    int64_t maxGranularity = 0;  // a power of two; 0: none
    bool skipSanity = false;     // do not ask whether the whole graph fails
    /// What PyTorch prints: "Strategy: Truncate suffix (G: 4) (7 nodes, 2 inputs)".
    std::function<void(const std::string& line)> log;
};

/// Errors: the graph does not fail; the granularity is not a power of two; the answers of `trials` contradict each
/// other; theirs.
Result<Candidate> minifyAsPyTorch(const Candidate& start, Trials& trials, const PyTorchMinifierOptions& options);

}  // namespace cutaway
