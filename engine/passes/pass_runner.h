#pragma once
// Runs passes without trusting them: verifies each result, checks the returned "changed" against the graph's
// fingerprint in both directions, records, times, and stops when cancelled or out of fuel.
#include <vector>

#include "cutaway/trace.h"
#include "engine/passes/pass.h"
#include "engine/support/hash.h"

namespace cutaway {

class BodyRound;
class UserPasses;

/// One pass of a run, with the graphs on both sides. A step that changed nothing shares one snapshot.
struct Step {
    StepInfo info;
    const Pass* pass = nullptr;
    bool required = false;  // the pass or its stage is, so that its rewrites are not part of a request's fuel
    bool prepares = false;  // Pass::prepares
    Snapshot before, after;
    /// Of a split, for each graph the graph that it begins with; `after` is the graph that was split.
    std::vector<std::pair<std::string, Snapshot>> made;
    std::vector<RewriteInfo> rewrites;
    std::vector<RuleUse> rules;
    std::vector<Measurement> measurements;  // of the hooks, as the pass asked
    Error error;                            // of a failed step; info.error is its text
    bool invalidResult = false;  // the pass left a graph that does not verify; the error's message is the broken rule
};

/// A whole run: never changed once it is made. When a pass failed, its step is the last one and carries the error.
struct CompileTrace {
    CompileRequest request;
    CompileHooks hooks;  // for questions that no step has asked
    Snapshot input;
    std::vector<Step> steps;
    std::vector<StageInfo> stages;
    double seconds = 0;
    bool cancelled = false;   // the last passes did not run
    std::string cancelledAt;  // the pass that was interrupted
    // What steps refer to beside the table of passes:
    std::shared_ptr<const UserPasses> own;
    std::vector<std::shared_ptr<const BodyRound>> rounds;

    /// The graph behind the last step.
    const Snapshot& result() const { return steps.empty() ? input : steps.back().after; }
    /// The graph behind the last step of a graph ("forward"); null if it has none.
    Snapshot resultOf(std::string_view graphName) const;
    /// Whether the graph was split, so that there are a forward and a backward.
    bool isSplit() const;
    bool failed() const { return !steps.empty() && steps.back().info.state == StepState::Failed; }
};

/// A copy of a snapshot for passes to work on. If a pass leaves it untouched, the next pass uses it, so a run copies
/// once per change instead of once per pass.
struct WorkingCopy {
    Snapshot of;
    std::shared_ptr<Module> module;  // null: there is no copy
    Hash128 fingerprint;             // of the snapshot
};

/// A node that the user asks about, and what the pass says of it (Rewriter::refuse).
struct WatchedNode {
    std::string body;  // as RewriteInfo's
    NodeId node = NodeId::None;
    std::vector<Refusal> refusals;
};

/// Runs one pass on a copy of `before`: the one in `working` if it fits, else a new one. Never fails itself: what goes
/// wrong is in the step. `fuel`: rewrites allowed. `earlier`: for passes that follow another graph. The
/// caller fills in the step's place in the run.
Step runPass(const Pass& pass, const Snapshot& before, PassContext context, std::optional<int64_t> fuel = {},
             const CancelToken* cancel = nullptr, WorkingCopy* working = nullptr, WatchedNode* watched = nullptr,
             const Snapshot& earlier = {});
/// What the pass follows, on this graph; null if it follows nothing.
Snapshot followedBy(const Pass& pass, std::string_view graphName, const CompileTrace& trace);

/// The context with the example values of the module's size symbols, as runPass gives it to a pass.
PassContext withSizeHints(PassContext context, const Module& module);

/// Runs the pass of a recorded step once more, with that much fuel and the measurements that it got.
Step runAgain(const Step& step, const CompileTrace& trace, int64_t fuel, const CancelToken* cancel = nullptr);

/// The graph after the first `rewrites` rewrites of a recorded step.
Result<Snapshot> replayRewrites(const Step& step, const CompileTrace& trace, int rewrites,
                                const CancelToken* cancel = nullptr);

/// Op name -> count, placeholders, attributes and output included, subgraphs not.
std::map<std::string, int> opHistogram(const Module& module);

}  // namespace cutaway
