#pragma once
// Decides which nodes share a kernel. Greedy, in graph order: every node with a lowering rule starts a group of its own
// and tries to join the groups of its producers, the largest values first, then groups that read the same memory. A
// union must not make a cycle, its members must fit one iteration space, and no reduction may end up being computed
// once per element. Every decision is recorded with the bytes that it saves, or would have saved. What is tried is
// bounded by the size of a kernel and a budget that grows with the graph, so time does, too.
#include <memory>
#include <set>

#include "cutaway/request.h"
#include "engine/ops/alias.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/lowering_memo.h"

namespace cutaway {

struct FusionGroup {
    std::vector<const Node*> members;  // graph order
    Space space;
    int cost = 0;
    Hash128 name;  // LoweringName's, of a group that fusing has made
};

/// What `--enable fusion=key:value` says.
struct FusionOptions {
    size_t maxNodes = 120;       // max_nodes of a kernel
    int64_t triesPerNode = 400;  // tries_per_node: how many nodes may be lowered to try merges, for each of the graph
    bool roundsHalves = false;   // emulate_precision_casts
};
inline FusionOptions fusionOptions(const CompileRequest& request) {
    FusionOptions options;
    const OptionalPass* given = request.enabled("fusion");
    if (given == nullptr) return options;
    options.maxNodes = static_cast<size_t>(given->number("max_nodes", 120));
    options.triesPerNode = static_cast<int64_t>(given->number("tries_per_node", 400));
    options.roundsHalves = given->flag("emulate_precision_casts", false);
    return options;
}

/// What a node is to the scheduler. Alias: a view. Free: computed again by each reader. External: by no kernel.
struct NodeFacts {
    enum class Role : uint8_t { Input, Alias, Free, Lowered, External, Output, Symbol, Dead } role = Role::External;
    RuleFacts rule;
    int position = 0;  // in graph order
    int group = -1;    // of Lowered nodes
};
/// Facts about every node, by its id.
std::vector<NodeFacts> classify(const Graph& graph, const Schedule& schedule);

struct Grouping {
    std::vector<NodeFacts> facts;     // by node id
    std::vector<FusionGroup> groups;  // empty ones were merged away
    std::vector<FusionDecision> decisions;
    /// What has to run before what because one of the two writes to memory.
    std::shared_ptr<const MemoryOrder> memory;
    const TargetInfo* target = nullptr;  // Schedule's, which is not kept
    std::shared_ptr<LoweringMemo> memo;  // Schedule's
    bool roundsHalves = false;           // Schedule's
    const NodeFacts& of(const Node& node) const { return facts[index(node.id())]; }
};

/// Whether `wanted` holds for a reader of the value, looking through views and nodes that are made again wherever they
/// are read; asks until it does.
template <class F>
bool anyReader(const Grouping& grouping, const Node& node, const F& wanted) {
    for (const Node* user : node.users()) {
        const NodeFacts::Role role = grouping.of(*user).role;
        const bool handsOn = role == NodeFacts::Role::Alias || role == NodeFacts::Role::Free;
        if (handsOn ? anyReader(grouping, *user, wanted) : role != NodeFacts::Role::Dead && wanted(*user)) return true;
    }
    return false;
}

/// The values of a group that must be stored: those that somebody outside reads, and quotients of integers by data.
std::vector<ValueKey> storedValues(const Grouping& grouping, const FusionGroup& group);
/// A group's kernel before buffers are numbered: loads name values, and only `stored`, which come first, have numbers.
struct KernelDraft {
    Kernel kernel;
    std::vector<ValueKey> stored;
    std::set<ValueKey> loaded;
    NamedProblem problem;  // why these nodes cannot share a kernel; empty: they can
};
KernelDraft draftKernel(const Grouping& grouping, const FusionGroup& group, const std::vector<ValueKey>& stored);

/// Names what draftKernel makes of the group: one that is alike has the same kernel, over values of its own.
LoweringName nameOf(const Grouping& grouping, const FusionGroup& group, const std::vector<ValueKey>& stored);

/// The draft with numbered buffers; `bindings` in the order of kernel->buffers.
struct BuiltKernel {
    std::shared_ptr<const Kernel> kernel;  // of all groups that are alike; null if there is a problem
    std::vector<ValueKey> bindings;
    std::string problem;
};
BuiltKernel buildKernel(const Grouping& grouping, const FusionGroup& group);
/// The same of a draft that is there; `name`: of its group. Afterwards buildKernel has it for all groups of that name.
BuiltKernel buildKernel(const Grouping& grouping, const LoweringName& name, KernelDraft draft);

/// Decides which nodes share a kernel; each merge is a rewrite. `schedule`: which calls libraries compute.
Grouping groupNodes(const Graph& graph, const Schedule& schedule, Rewriter& rewriter);
/// The groups that a schedule has decided.
Grouping groupsOf(const Graph& graph, const Schedule& schedule);

}  // namespace cutaway
