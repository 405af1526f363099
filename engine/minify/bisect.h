#pragma once
// Finds the single rewrite that broke the graph: a binary search over all rewrites of a recorded run. Only the pass in
// which a probe falls runs again, with that much fuel; graphs between passes are taken from the run.
#include <functional>
#include <string>
#include <vector>

#include "cutaway/jobs.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// The result of testing one graph.
struct Verdict {
    bool bad = false;
    std::string detail;      // "largest error 0.25 of 1.5", for the user
    bool otherType = false;  // a result has another dtype or shape
};
/// What `detail` says of such a result.
inline constexpr const char* kOtherType = "another dtype or shape";
/// An error ends the search: the test itself could not be made.
using GraphTest = std::function<Result<Verdict>(const Module&)>;

struct BisectTry {
    int rewrites = 0;           // done in the whole run when the graph was tested
    int step = -1, inStep = 0;  // the same place as step and rewrites of that step
    Verdict verdict;
};
/// A step, and how many of the searched rewrites are done when it ends.
struct BisectRange {
    int step = -1, end = 0;
};
struct BisectOutcome {
    bool found = false;  // false: the last graph is good
    int step = -1;       // the culprit: rewrite `rewrite` of this step
    int rewrite = -1;
    int total = 0;  // rewrites searched
    std::vector<BisectRange> ranges;
    std::vector<BisectTry> tries;
    int good = 0, bad = 0;  // rewrites done in the last good and the first bad graph: the culprit is one in between
};
using BisectFollow = std::function<void(const BisectOutcome& soFar)>;

/// Searches the steps from `firstStep` on. The graph before it counts as good and is not tested; the last graph is
/// tested first, then those between graphs, between stages and between passes, which need no replay, and at last those
/// within the pass: a binary search on each level. The graph is bad with the rewrite that is found and good without it,
/// even when good and bad alternate. If the last step of the run failed, finds the first rewrite with which that pass
/// fails, without calling `test`.
Result<BisectOutcome> bisect(const CompileTrace& trace, int firstStep, const GraphTest& test,
                             const Progress& progress = {}, const BisectFollow& follow = {});

}  // namespace cutaway
