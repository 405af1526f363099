#pragma once
// Finding the rewrite that broke the graph: the first graph of a run that is bad, then the stage and the pass that made
// it so, then the single rewrite.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

enum class BisectCheck : uint8_t {
    Numbers,  // outputs differ from those of the graph as opened
    Nan,      // an output has a NaN or an infinity that the graph as opened does not have
    Command,  // a command, given the runnable graph's path, exits with another status than 0
    Crash,    // a pass, the verifier, the scheduler or the run fails, or the process that does it dies, hangs, or takes
              // all memory
};
struct BisectOptions {
    BisectCheck check = BisectCheck::Numbers;
    /// Numbers, Nan and Crash: what runs the graph behind the passes.
    Backend backend = Backend::Reference;
    std::string inputsFile;  // as RunOptions'
    double tolerance =
        1e-4;  // for Numbers: |error| <= t (|expected| + max(1, 90th percentile of |expected|)); t at least the dtype's
    std::string command;         // for Command; "{}" stands for the path, else it is appended
    double timeoutSeconds = 60;  // of one test
    int64_t memoryBytes = 0;     // of one test, in its own process; 0: what the machine has left
};

/// The rewrites of one step in the line of all that are searched.
struct BisectSection {
    int step = -1;
    std::string graph, stage, pass;  // "joint", "post_grad", "decompose#1"
    int end = 0;                     // rewrites up to its last, of all that are searched; the first section begins at 0
};
struct BisectProbe {
    int rewrites = 0;  // how many, of all that are searched, were done in the graph that was tested
    Place place;       // step -1 where the run holds no such graph
    bool bad = false;
    std::string detail;
    std::string command;  // which does the same on a command line
};
/// What the search came to know, from the whole to the part.
struct BisectLevel {
    std::string level, name;  // "graph", "stage", "pass", "rewrite"
    int probes = 0;           // that were made until it was known
};
/// A value that the culprit changed.
struct BisectValue {
    std::string output;
    ElementDifference worst;  // actual: with the culprit; expected: without it
};
struct BisectReport {
    bool found = false;        // false: the last graph is good
    bool badAsOpened = false;  // the graph is bad before any rewrite, so none broke it
    Place culprit;             // right after the rewrite; its step and `rewrite` say the rest
    StepInfo step;
    RewriteInfo rewrite;  // index -1: the step fails before its first rewrite
    int searched = 0;     // rewrites among which it was found
    std::vector<BisectSection> sections;
    std::vector<BisectProbe> probes;
    int good = 0, bad = 0;  // the culprit is behind `good` and not behind `bad`; equal: it is not known yet
    std::vector<BisectLevel> levels;
    std::optional<BisectValue> value;  // of Numbers
    std::string failure;               // of Crash: its signature
    std::string note;                  // what was left out of the search, and why
};
using BisectWatch = std::function<void(const BisectReport& soFar)>;

/// Finds the rewrite of the run that broke the graph: it is bad with it and good without it. A run that failed is
/// searched for the rewrite with which it fails. `watch` is called after each test, on this thread.
Result<BisectReport> bisect(Session& session, RunId run, const BisectOptions& options, const BisectWatch& watch = {},
                            const Progress& progress = {});

/// The same for a request with which compiling itself may end the process: each test compiles anew, in a process of its
/// own, with as many rewrites as `--fuel` allows. Rewrites of passes that are required are not among those that are
/// searched. Places in the report have no run.
Result<BisectReport> bisectCompile(Session& session, const CompileRequest& request, const BisectOptions& options,
                                   const BisectWatch& watch = {}, const Progress& progress = {});

}  // namespace cutaway
