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
    bool check = false;           // load and run it before it is put in place
};
/// What came of loading the library in a process of its own, running it on the folder's inputs, and comparing what it
/// returns with the reference interpreter.
struct ExportCheck {
    enum class Outcome : uint8_t {
        LeftOut,     // nobody asked for it
        Agrees,      // every result is the reference's
        Differs,     // `why` names the result and the element
        Failed,      // `why`: it cannot be loaded, or its run fails
        Impossible,  // `why`: the kernels are for another processor; the reference does not run either
    };
    Outcome outcome = Outcome::LeftOut;
    std::string why;          // a sentence; empty if it agrees or was left out
    std::string note;         // what explains a difference that is none, such as ties between equal keys
    int results = 0;          // that were compared
    double largestError = 0;  // absolute, of all results
    bool isGood() const { return outcome != Outcome::Differs && outcome != Outcome::Failed; }
};
/// "agrees", "differs", "failed", "impossible", "left out".
std::string_view wordOf(ExportCheck::Outcome outcome);
/// "Loaded and run: 2 results agree with the reference, largest error 1.2e-07."
std::string sentenceOf(const ExportCheck& check);

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
    ExportCheck check;
};
/// Of a run for inference on the CPU. Errors: the run failed, or is one for training; a call that only the engine can
/// compute, by name; the folder holds something else; the compiler's.
Result<ExportReport> exportProgram(Session& session, RunId run, const ExportOptions& options,
                                   const Progress& progress = {});

}  // namespace cutaway
