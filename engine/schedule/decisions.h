#pragma once
// What the passes of the scheduling stage decide about a graph. They edit no node: each decision is a rewrite of the
// module's plan, so that fuel, stepping and bisecting reach it. `scheduleModule` makes kernels and calls of it.
#include <map>
#include <string>
#include <vector>

#include "cutaway/request.h"
#include "engine/ir/module.h"
#include "engine/libraries/choose.h"
#include "engine/loops/target.h"
#include "engine/rewrite/rewriter.h"
#include "engine/schedule/space.h"

namespace cutaway {

/// Whether a producer is computed inside its consumer's kernel, and why.
struct FusionDecision {
    NodeId producer = NodeId::None, consumer = NodeId::None;
    bool fused = false;
    std::string sentence;  // "mul is computed in the kernel of add: one loop over [64, 128] makes both"
};

class LoweringMemo;

struct Schedule final : ModulePlan {
    explicit Schedule(const TargetInfo& machine);

    TargetInfo target;  // for which all of this is decided
    /// Nodes that share a kernel, in graph order. A node that is in none has one to itself.
    struct Group {
        std::vector<NodeId> members;
        Space space;
    };
    std::map<NodeId, const LibraryRow*> libraries;  // calls that a library computes, by which row
    std::vector<Group> groups;
    std::vector<FusionDecision> decisions;  // each yes and no
    /// Values that are written over operands of their kernels; a node and which of its results.
    std::map<std::pair<NodeId, size_t>, std::pair<NodeId, size_t>> reuses;
    bool forExport = false;              // of a program without the engine beside it; so are those of its bodies
    bool roundsHalves = false;           // kernels round f16 and bf16 after each call, not only where a value is stored
    std::shared_ptr<LoweringMemo> memo;  // shared by copies; no decision, so it is not part of the fingerprint

    /// Over the target and the decisions, without their sentences.
    Hash128 fingerprint() const override;
    /// Null if nothing has been decided of the module.
    static const Schedule* of(const Module& module);
};

/// The row of the target that is asked for.
const TargetInfo& targetOf(const CompileRequest& request);
/// The target of the module's schedule; the one asked for if it has none.
const TargetInfo& targetOf(const Module& module, const CompileRequest& request);
/// The module's schedule, to be changed; an empty one for the target asked for if it has none. Snapshots keep theirs.
std::shared_ptr<Schedule> copyOfSchedule(const Module& module, const CompileRequest& request);

/// Writes calls that nothing on the target's device computes as calls that something does, where they have an
/// expansion; the host computes what is left.
Result<bool> expandCalls(Module& module, Rewriter& rewriter);
/// An empty schedule: each call by itself. Errors: a call that can be computed by nothing.
Result<bool> beginSchedule(Module& module, Rewriter& rewriter);
/// The layouts of values that libraries make. What is returned keeps its own.
Result<bool> assignLayouts(Module& module, Rewriter& rewriter);
/// What a forward saves has the layout in its backward that the forward leaves it in (A10.1). Without a forward nothing
/// is saved.
Result<bool> takeSavedLayouts(Module& backward, const Module* forward, Rewriter& rewriter);
/// Makes views of reshapes that move nothing. Runs behind assignLayouts, since layouts decide which reshapes those are.
Result<bool> viewReshapes(Module& module, Rewriter& rewriter);
/// Calls that libraries compute. What is left is computed by kernels, or by functions that are slower.
Result<bool> chooseLibraries(Module& module, Rewriter& rewriter);
/// The scheduled module for programs without an engine: calls that the engine's own functions compute, being faster, go
/// to libraries that have them, too. It has a schedule already.
std::shared_ptr<const Module> forExport(const std::shared_ptr<const Module>& module);
/// Which nodes share a kernel: greedy, in graph order (fusion.h).
Result<bool> fuseNodes(Module& module, Rewriter& rewriter);
/// Which values are written over operands that nobody reads afterwards (reuse.h). The last to decide: it asks when each
/// value is used for the last time.
Result<bool> reuseMemory(Module& module, Rewriter& rewriter);

}  // namespace cutaway
