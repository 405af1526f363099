#pragma once
// The folder that shows a failure alone: the graph (graph.py), the same as a Python file that needs nothing but PyTorch
// (repro.py), its inputs (inputs.safetensors), what to do with it (repro.json), and a page for people (README.md).
#include "cutaway/minify.h"
#include "engine/trials/trial_job.h"

namespace cutaway {

struct ReproFolder {
    TrialJob job;
    FailureSignature signature;
    std::string detail;          // how it fails
    std::string command, match;  // of a check by command
    double timeoutSeconds = 60;
    int64_t memoryBytes = 0;
    int repeats = 1;
    std::string origin;  // "gpt2.pt2, 2 900 nodes"
    std::vector<std::string> remarks;
};

/// Whole or not at all: a folder that a killed program was writing is not there under its name. Replaces one that is.
/// Inputs of more than `mostBytes` are left out.
Result<void> writeRepro(const std::string& folder, const ReproFolder& repro, int64_t mostBytes);
/// Errors: the folder holds none.
Result<ReproFolder> readRepro(const std::string& folder);
bool isReproFolder(const std::string& folder);
/// Tries it in a fresh process.
Result<TrialOutcome> tryRepro(const ReproFolder& repro, const Progress& progress);

}  // namespace cutaway
