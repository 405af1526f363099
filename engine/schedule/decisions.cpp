#include "engine/schedule/decisions.h"

#include "engine/libraries/plugin_rows.h"
#include "engine/schedule/fusion.h"
#include "engine/schedule/lowering_memo.h"
#include "engine/schedule/schedule.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

void add(Hasher& hasher, const SymInt& size) {
    if (size.isInt()) hasher.add(size.value());
    else hasher.add(true).add(size.expr()->hash);
}

}  // namespace

Schedule::Schedule(const TargetInfo& machine) : target(machine), memo(std::make_shared<LoweringMemo>()) {}

const TargetInfo& targetOf(const CompileRequest& request) {
    const auto gpu = [](Tf32 tf32, bool measures) {
        TargetInfo target = kH100Target;
        target.tf32 = tf32;
        target.measuresProducts = measures;
        return target;
    };
    static const TargetInfo kGpus[][2] = {{gpu(Tf32::None, false), gpu(Tf32::None, true)},
                                          {gpu(Tf32::Conv, false), gpu(Tf32::Conv, true)},
                                          {gpu(Tf32::All, false), gpu(Tf32::All, true)}};
    switch (request.target) {
        case Target::Cpu: return kCpuTarget;
        case Target::Cuda:
            return kGpus[static_cast<size_t>(request.tf32)][request.enabled("max_autotune") != nullptr ? 1 : 0];
    }
    CT_CHECK(false, "each target has a row");
}

const TargetInfo& targetOf(const Module& module, const CompileRequest& request) {
    const Schedule* const known = Schedule::of(module);
    return known ? known->target : targetOf(request);
}

std::shared_ptr<Schedule> copyOfSchedule(const Module& module, const CompileRequest& request) {
    const Schedule* schedule = Schedule::of(module);
    return schedule ? std::make_shared<Schedule>(*schedule) : std::make_shared<Schedule>(targetOf(request));
}

Hash128 Schedule::fingerprint() const {
    Hasher hasher;
    target.addTo(hasher);
    hasher.add(static_cast<uint64_t>(libraries.size()));
    for (const auto& [node, row] : libraries) {
        hasher.add(static_cast<uint64_t>(index(node))).add(row->op).add(row->library.name);
        if (row->library.plugin != nullptr) hasher.add(row->library.plugin->hash);
    }
    hasher.add(static_cast<uint64_t>(groups.size()));
    for (const Group& group : groups) {
        hasher.add(static_cast<uint64_t>(group.members.size()));
        for (const NodeId member : group.members) hasher.add(static_cast<uint64_t>(index(member)));
        for (const SymInt& size : group.space.sizes) add(hasher, size);
        for (const bool reduced : group.space.reduced) hasher.add(reduced);
    }
    hasher.add(static_cast<uint64_t>(reuses.size()));
    for (const auto& [result, operand] : reuses)
        for (const auto& [node, number] : {result, operand})
            hasher.add(static_cast<uint64_t>(index(node))).add(static_cast<uint64_t>(number));
    if (roundsHalves) hasher.add(true);
    return hasher.finish();
}

const Schedule* Schedule::of(const Module& module) { return dynamic_cast<const Schedule*>(module.plan.get()); }

Result<bool> beginSchedule(Module& module, Rewriter& rewriter) {
    auto schedule = std::make_shared<Schedule>(targetOf(rewriter.request()));
    CT_TRY_VOID(checkSchedulable(module, *schedule));
    const Node* output = module.graph().outputNode();
    if (output == nullptr) return false;
    if (Schedule::of(module)) return rewriter.refuse("begin_schedule", *output, "the graph has a schedule already");
    if (rewriter.begin("begin_schedule", *output, "each call is computed by itself") != Go::Yes) return false;
    schedule->roundsHalves = fusionOptions(rewriter.request()).roundsHalves;
    module.plan = std::move(schedule);
    return true;
}

Result<bool> chooseLibraries(Module& module, Rewriter& rewriter) {
    const std::shared_ptr<Schedule> schedule = copyOfSchedule(module, rewriter.request());
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || schedule->libraries.contains(node.id())) continue;
        const LibraryRow* const row = libraryRowOf(node, schedule->target);
        if (row == nullptr) {
            if (rewriter.watches(node)) rewriter.refuse("call_library", node, whyNoLibrary(node, schedule->target));
            continue;
        }
        if (row->isFunction() && probe(node, schedule->target, *schedule->memo).lowers) {
            rewriter.refuse("call_library", node, "it is fused into the kernel of its users");
            continue;
        }
        const Go go =
            rewriter.begin("call_library", node, "a library computes it: " + libraryText(*row, node, schedule->target));
        if (go == Go::Stop) break;
        if (go == Go::Yes) schedule->libraries.emplace(node.id(), row);
    }
    if (rewriter.changed()) module.plan = schedule;
    return rewriter.changed();
}

std::shared_ptr<const Module> forExport(const std::shared_ptr<const Module>& module) {
    const Schedule* known = Schedule::of(*module);
    CT_CHECK(known, "what stands alone has been scheduled");
    const auto schedule = std::make_shared<Schedule>(*known);
    schedule->forExport = true;
    for (const Node& node : module->graph().nodes()) {
        if (!node.isCall() || schedule->libraries.contains(node.id())) continue;
        const LibraryRow* const row = libraryRowOf(node, schedule->target, true);
        if (row != nullptr && !probe(node, schedule->target, *schedule->memo).lowers)
            schedule->libraries.emplace(node.id(), row);
    }
    auto alone = std::make_shared<Module>(*module);
    alone->plan = schedule;
    return alone;
}

Result<bool> fuseNodes(Module& module, Rewriter& rewriter) {
    const std::shared_ptr<Schedule> schedule = copyOfSchedule(module, rewriter.request());
    if (!schedule->groups.empty()) return false;  // decided before
    Grouping grouping = groupNodes(module.graph(), *schedule, rewriter);
    schedule->decisions = std::move(grouping.decisions);
    for (const FusionGroup& group : grouping.groups) {
        if (group.members.size() < 2) continue;
        Schedule::Group shared{{}, group.space};
        for (const Node* member : group.members) shared.members.push_back(member->id());
        schedule->groups.push_back(std::move(shared));
    }
    if (rewriter.changed() || module.plan) module.plan = schedule;
    return rewriter.changed();
}

}  // namespace cutaway
