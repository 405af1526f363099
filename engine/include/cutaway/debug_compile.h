#pragma once
// debug_compile of PyTorch's functorch compilers: a folder that holds the open graph with everything that running it
// takes, the command that minifies it, and the sequential backend (ts_compile) step by step.
#include <string>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

enum class SequentialBackend : uint8_t {
    Ts,        // ts_compile: all nine slots
    SimpleTs,  // simple_ts_compile: overloads, the linear program, frozen constants
    Nop,       // the graph as it is
    Print,     // prints its code
    Draw,      // draws it, then gives it back
};
struct DebugCompileOptions {
    std::string folder;
    SequentialBackend backend = SequentialBackend::Ts;
    CompileRequest request;  // for the minifier; parity: devices lose their index, as PyTorch's do
    std::string inputsFile;  // as RunOptions'
    double timeoutSeconds = 60;
};
/// One slot of the sequential backend.
struct SequentialStep {
    std::string name, what;  // "_to_copy becomes to", "2 of 3 calls"
    bool changed = false;
    std::string text;  // of the graph behind it, if it changed that
};
struct DebugCompileReport {
    std::vector<std::string> files;  // in the folder
    std::string command;             // which minifies the bundle, as a shell takes it
    bool reloaded = false;           // what the folder holds is the graph again, node by node
    std::string difference;          // if not: where the two differ
    std::vector<SequentialStep> steps;
    std::string code;  // of the compiled graph, or as asked for: Print
    std::string ran;   // "2 results in 1.3 ms"; why it did not run
    bool runs = false;
    std::vector<std::string> remarks;
};
/// Errors: the folder cannot be written or holds something else; the graph cannot be written as Python. That the bundle
/// does not run is in the report.
Result<DebugCompileReport> debugCompile(Session& session, const DebugCompileOptions& options,
                                        const Progress& progress = {});

}  // namespace cutaway
