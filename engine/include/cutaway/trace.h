#pragma once
// The record of a compile run: stages, passes and single rewrites.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/node_key.h"

namespace cutaway {

/// One rewrite inside a pass: one unit of fuel.
struct RewriteInfo {
    int index = 0;     // within the step
    std::string rule;  // "mm_add_to_addmm", "dead node"
    std::string why;   // the rule's reason, if it has one
    std::string node;  // name of the node it started from
    NodeId nodeId = NodeId::None;
    std::string body = {};  // path of the subgraph that holds the node, names joined by "/"; empty: the main graph
    NodeKey key = NodeKey::None;  // of node and body, as a session gives it
};

enum class StepState : uint8_t { Unchanged, Changed, Failed, Disabled };

/// One pass of one run.
struct StepInfo {
    int index = 0;          // within the run
    std::string graphName;  // "main"; of training "joint", and behind the partition "forward" and "backward"
    std::string stage;      // "pre_grad", "capture", "joint", "post_grad", "lowering", "schedule"
    std::string name;       // "remove_noop_ops"
    int occurrence = 1;   // counts the passes of that name in its graph and stage, those that are switched off included
    std::string summary;  // first sentence of the pass's description
    StepState state = StepState::Unchanged;
    int added = 0, removed = 0, edited = 0;
    double milliseconds = 0;      // copying, the pass, checking it, and comparing
    double passMilliseconds = 0;  // of it the pass itself
    int rewrites = 0;
    int nodesBefore = 0, nodesAfter = 0;
    /// Of steps that freeze: what the graph's constants and parameters take, memory that several share once.
    int64_t constantBytesBefore = 0, constantBytesAfter = 0;
    std::string error;  // verifier's or pass's message when Failed

    /// "main/joint/remove_noop_ops#1": the same step in every run of the same plan, in every process (step_key.h).
    std::string key() const;
};

/// What a rule did in one step.
struct RuleUse {
    std::string rule;
    int64_t tried = 0, applied = 0;  // nodes
    double milliseconds = 0;         // matching and building
    /// Matches as PyTorch's pattern_matcher_count counts them: also those that its handler then leaves alone.
    int64_t counted = 0;
};

/// A rule of the pipeline.
struct RuleInfo {
    std::string pass, name, why;      // pass: the step that applies it
    std::string find, replace;        // text, a statement a line; "(code)" where a function builds it
    bool condition = false;           // has a condition in code beside `find`
    std::vector<std::string> starts;  // ops at which matching may start
};

/// Whether a rule applies at a node, and if not, the first condition that failed in the attempt that got furthest.
struct RuleExplanation {
    std::string pass, rule;
    NodeKey node = NodeKey::None;  // where matching started
    bool applies = false;
    std::string reason;          // a sentence; empty if it applies
    std::vector<NodeKey> nodes;  // what it would replace, or what the reason is about
};

/// What a pass asked of the hooks of its run (CompileHooks), and the answer.
struct Measurement {
    std::string kind;  // "time": a graph as text; "fact": of the device; "recall": a key
    std::string question;
    std::optional<double> value;  // none: nobody knew
    bool operator==(const Measurement&) const = default;
};

/// A stage's graphs as op counts, for comparison with other compilers.
struct StageInfo {
    std::string graphName, stage;
    std::map<std::string, int> before, after;  // op name -> count; "placeholder", "get_attr", "output" included
    double seconds = 0;
};

}  // namespace cutaway
