#pragma once
// Minifying: from a graph that fails to a few nodes that fail in the same way, and a folder that shows it alone.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cutaway/failure.h"
#include "cutaway/session.h"

namespace cutaway {

enum class MinifyCheck : uint8_t {
    Numbers,  // results differ: after the passes from before them, compiled from interpreted
    Crash,    // a pass, the scheduler, or the run fails, hangs, or takes too much memory
    Nan,      // a NaN or an infinity of finite inputs
    Command,  // a command, given the graph as a runnable Python file, fails
};

struct MinifyOptions {
    MinifyCheck check = MinifyCheck::Crash;
    Backend backend = Backend::Reference;
    CompileRequest request;
    /// The graph there in place of the one that was opened; only what the compiler does from its stage on is tried. A
    /// forward or backward is minified as a graph of its own. Inputs of a backward that its forward saves are made up.
    std::optional<Place> place;
    std::string inputsFile;      // as RunOptions'
    double tolerance = 1e-4;     // of Numbers, as BisectOptions'
    std::string command;         // of Command; "{}" stands for the path, else it is appended; of Numbers judgeCommand's
    std::string match;           // of Command: the text in its output that means failure; empty: its exit status does
    double timeoutSeconds = 60;  // of one trial
    int64_t memoryBytes = 0;     // of one trial; 0: what the machine has left
    int repeats = 1;             // a graph fails if one of so many trials of it does
    int jobs = 0;                // trials at once; 0: one a core. The result does not depend on it
    int64_t maxTrials = 0;       // 0: as many as it takes
    int64_t maxGranularity = 0;  // of PyTorch's minifier (request.parity): a power of two; 0: none
    std::string signature;       // the failure to keep, as text; empty: the one that the graph has
    std::vector<std::string> without;  // strategies to leave out, by name
    std::string folder;                // where everything goes. One that holds this search is gone on with
    bool restart = false;              // forget what the folder holds of an earlier search
};

/// A graph that became the best so far.
struct MinifyStep {
    int trials = 0;  // made until then
    int nodes = 0, inputs = 0, outputs = 0;
    std::string how;  // "bypassed"
    double seconds = 0;
};
/// Of a search under way.
struct MinifyState {
    int trials = 0, nodesBefore = 0;
    FailureSignature signature;
    std::vector<MinifyStep> steps;
    std::string best;                         // as text, when it is new since the last report
    std::shared_ptr<const UnionGraph> graph;  // the same as a picture
    std::string logLine;                      // empty: none
};
struct MinifyReport {
    int nodesBefore = 0, nodes = 0, inputs = 0, outputs = 0;
    int trials = 0;  // graphs that were tried; of PyTorch's minifier, its queries
    int made = 0;    // of them run by this call; the folder's journal knew the rest
    FailureSignature signature;
    std::string detail;       // how the result fails: "output 1: largest error 3 of 4"
    std::string folder;       // of the result, which runReproducer repeats
    std::string command;      // repeats it, as a shell takes it
    std::string graph;        // the result's file
    std::string text;         // the result
    CompileRequest request;   // that the result fails with
    bool reproduced = false;  // in a fresh process, from the folder
    bool stopped = false;     // before nothing could be taken away any more
    std::string whyStopped;
    std::vector<MinifyStep> steps;
    double seconds = 0;
    double overheadMilliseconds = 0;  // median of what a trial took beside its own work
};

/// Strategies in running order: name and sentence.
std::vector<std::pair<std::string, std::string>> minifyStrategies();

/// Minifies the session's open graph. Cancelling keeps the best; a later call with the same folder goes on there.
/// Errors: the graph does not fail; the folder holds another search, or cannot be written; the command cannot be run.
Result<MinifyReport> minify(Session& session, const MinifyOptions& options,
                            const std::function<void(const MinifyState&)>& watch = {}, const Progress& progress = {});

}  // namespace cutaway
