#pragma once
// A compiled model as a folder that builds and runs without Cutaway.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

/// A choice: its word on the command line, what a window calls it, and what it means.
struct ExportChoice {
    std::string_view word, title, meaning;
};
/// The processors for which kernels are compiled, and where the weights are. The first is the default.
std::span<const ExportChoice> exportTargets();
std::span<const ExportChoice> exportWeights();

struct ExportOptions {
    /// New, empty, or an earlier export, which is replaced; "x.zip": an archive of the folder. Empty: one of the user's
    /// cache, named after the code.
    std::string folder;
    std::string name;             // of the library and its functions; empty: made from the model's file
    std::string inputsFile;       // as RunOptions': what main.c runs on unless told otherwise
    double timeoutSeconds = 300;  // of a compiler
    std::string target, weights;  // words of exportTargets() and exportWeights(); empty: the first
    bool debug = false;           // with what a debugger reads
};
struct ExportReport {
    std::string folder;              // where it is
    std::string name, library;       // the library's path; within an archive
    std::vector<std::string> files;  // relative to the folder
    std::string inputsFrom;          // as RunReport's
    std::string command;             // that builds and runs the folder again, as a shell takes it
    std::string target;              // of the kernels
    std::string fixedSizes;          // why the program takes these sizes only; empty if it takes all of the graph's
    std::string compileLog;
    double compileSeconds = 0;
    int64_t bytes = 0;  // of all files
};
/// Of a run for inference on the CPU. Errors: the run failed, or is one for training; a call that only the engine can
/// compute, by name; the folder holds something else; the compiler's.
Result<ExportReport> exportProgram(Session& session, RunId run, const ExportOptions& options,
                                   const Progress& progress = {});

}  // namespace cutaway
