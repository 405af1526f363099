#include "engine/passes/pass_runner.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "cutaway/guarded.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/diff.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/verify.h"
#include "engine/passes/spoiled_graph.h"
#include "engine/support/elapsed.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// Counts every edit of the module's graphs, including edits that are undone and edits of provenance.
uint64_t editsOf(const Module& module) {
    uint64_t edits = module.graph().edits();
    for (const auto& [name, body] : module.subgraphs) edits += editsOf(*body);
    return edits;
}

/// Inferring all types again after every pass takes a third of a run's time, so only tests ask for it.
bool checksTypes() {
    static const bool asked = std::getenv("CUTAWAY_VERIFY_TYPES") != nullptr;
    return asked;
}

/// Notes in the step that an error is about what the pass left behind, not what the pass itself had to say.
Result<void> verifyResult(const Module& module, const VerifyOptions& options, Step& step) {
    auto sound = verify(module, options);
    step.invalidResult = !sound;
    return sound;
}

void fail(Step& step, const Error& error) {
    step.info.state = StepState::Failed;
    step.error = error;
    Error told = error;
    if (step.invalidResult) told.message = "leaves an invalid graph: " + told.message;
    step.info.error = told.text();
}

/// `fingerprinted`: of the graph before, and then of the one that the pass leaves.
Result<bool> runChecked(const Pass& pass, Module& module, const Module& before, const Snapshot& earlier,
                        Rewriter& rewriter, Hash128& fingerprinted, Step& step) {
    const auto start = std::chrono::steady_clock::now();
    // What goes wrong in one pass must not cost the user the session.
    const Result<bool> result = guarded([&]() -> Result<bool> {
        faultPoint("pass", pass.name);
        CT_TRY(const bool changed, pass.follow ? pass.follow(module, earlier.get(), rewriter) : pass(module, rewriter));
        CT_TRY(const bool spoiled, spoilGraph(pass, module, before, rewriter));
        return changed || spoiled;
    });
    step.info.passMilliseconds = millisecondsSince(start);
    CT_TRY(const bool claimed, result);
    if (claimed != rewriter.changed())
        return Error{ErrorCode::Internal,
                     claimed ? "says it changed the graph, but recorded no rewrite"
                             : "says it changed nothing, but recorded a rewrite",
                     {},
                     {}};
    const Hash128 left = fingerprint(module);
    const bool differs = !(std::exchange(fingerprinted, left) == left);
    if (claimed != differs)
        return Error{ErrorCode::Internal,
                     claimed ? "says it changed the graph, but the graph is the same"
                             : "says it changed nothing, but the graph differs",
                     {},
                     {}};
    if (differs) {
        VerifyOptions verifyOptions;
        verifyOptions.functional = pass.functional && !rewriter.outOfFuel();
        verifyOptions.types = verifyOptions.functional && checksTypes();
        CT_TRY_VOID(verifyResult(module, verifyOptions, step));
    }
    return differs;
}

}  // namespace

std::map<std::string, int> opHistogram(const Module& module) {
    std::map<std::string, int> counts;
    for (const Node& node : module.graph().nodes()) {
        switch (node.kind()) {
            case NodeKind::Placeholder: ++counts["placeholder"]; break;
            case NodeKind::GetAttr: ++counts["get_attr"]; break;
            case NodeKind::Output: ++counts["output"]; break;
            case NodeKind::Call: ++counts[node.op().name()]; break;
        }
    }
    return counts;
}

namespace {

Step stepOf(const Pass& pass, const Snapshot& before) {
    Step step;
    step.pass = &pass;
    step.before = step.after = before;
    step.info.name = std::string(pass.name);
    step.info.summary = std::string(pass.summary);
    step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(before->graph().size());
    return step;
}

/// Splits the graph into one for each graph, and verifies each.
Result<std::vector<Snapshot>> runSplit(const Pass& pass, const Snapshot& before, Rewriter& rewriter, Step& step) {
    return guarded([&]() -> Result<std::vector<Snapshot>> {
        faultPoint("pass", pass.name);
        CT_TRY(const auto modules, pass.split(*before, rewriter));
        if (!modules.empty()) CT_TRY_VOID(spoilGraph(pass, *modules.front(), *before, rewriter));
        std::vector<Snapshot> out;
        for (const std::shared_ptr<Module>& module : modules) {
            CT_TRY_VOID(verifyResult(*module, {.functional = pass.functional}, step));
            out.push_back(module);
        }
        return out;
    });
}

Step splitPass(const Pass& pass, const Snapshot& before, Rewriter& rewriter) {
    const auto start = std::chrono::steady_clock::now();
    Step step = stepOf(pass, before);
    const auto made = runSplit(pass, before, rewriter, step);
    step.info.milliseconds = step.info.passMilliseconds = millisecondsSince(start);
    step.rewrites = rewriter.done();
    step.measurements = rewriter.context().asked();
    step.info.rewrites = static_cast<int>(step.rewrites.size());
    if (!made) {
        fail(step, made.error());
        return step;
    }
    step.info.state = StepState::Changed;
    for (const Snapshot& graph : *made) step.made.emplace_back(std::string(), graph);
    return step;
}

}  // namespace

Step runPass(const Pass& pass, const Snapshot& before, PassContext context, std::optional<int64_t> fuel,
             const CancelToken* cancel, WorkingCopy* working, WatchedNode* watched, const Snapshot& earlier) {
    Rewriter rewriter(pass.name, withSizeHints(std::move(context), *before), fuel, cancel);
    if (pass.split) {
        if (watched)
            if (const Module* body = before->body(watched->body)) rewriter.watch(body->graph(), watched->node);
        Step step = splitPass(pass, before, rewriter);
        if (watched) watched->refusals = rewriter.refusals();
        return step;
    }
    Step step = stepOf(pass, before);
    const auto start = std::chrono::steady_clock::now();
    WorkingCopy copy;
    if (working) copy = std::exchange(*working, {});
    // Computed before copying, so that the copy has the hashes of nodes, too.
    if (copy.of != before) copy = {before, nullptr, fingerprint(*before)};
    if (!copy.module) copy.module = std::make_shared<Module>(*before);
    const std::shared_ptr<Module>& module = copy.module;
    const uint64_t edits = editsOf(*module);
    rewriter.setBodyPaths(*module);
    if (watched)
        if (const Module* body = module->body(watched->body)) rewriter.watch(body->graph(), watched->node);
    const Result<bool> changed = runChecked(pass, *module, *before, earlier, rewriter, copy.fingerprint, step);
    rewriter.setBodyPaths(*module);
    step.rewrites = rewriter.done();
    step.measurements = rewriter.context().asked();
    if (watched) watched->refusals = rewriter.refusals();
    for (const RuleStats& stats : rewriter.ruleStats())
        step.rules.push_back(
            {std::string(stats.rule), stats.tried, stats.applied, stats.seconds * 1000, stats.counted});
    step.info.rewrites = static_cast<int>(step.rewrites.size());
    if (!changed) {
        fail(step, changed.error());
        step.info.milliseconds = millisecondsSince(start);
        return step;
    }
    if (!*changed) {
        if (working && editsOf(*module) == edits) *working = std::move(copy);
        step.info.milliseconds = millisecondsSince(start);
        return step;
    }
    const ModuleDiff difference = diff(*before, *module);
    step.info.state = StepState::Changed;
    step.info.added = static_cast<int>(difference.added.size());
    step.info.removed = static_cast<int>(difference.removed.size());
    step.info.edited =
        static_cast<int>(std::count_if(difference.edited.begin(), difference.edited.end(), [&](NodeId id) {
            const Node *was = before->graph().find(id), *now = module->graph().find(id);
            return was && now && !sameButForInputs(*was, *now);
        }));
    step.info.nodesAfter = static_cast<int>(module->graph().size());
    step.after = module;
    if (working) *working = {step.after, nullptr, copy.fingerprint};
    step.info.milliseconds = millisecondsSince(start);
    return step;
}

Snapshot followedBy(const Pass& pass, std::string_view graphName, const CompileTrace& trace) {
    return pass.follow && graphName == "backward" ? trace.resultOf("forward") : nullptr;
}

PassContext withSizeHints(PassContext context, const Module& module) {
    if (module.symbols.empty()) return context;
    for (const auto& [symbol, value] : hintedSymbols(module)) context.sizeHints.emplace(symbol, value);
    return context;
}

Step runAgain(const Step& step, const CompileTrace& trace, int64_t fuel, const CancelToken* cancel) {
    PassContext context(trace.request, &trace.hooks);
    context.replay(step.measurements);
    return runPass(*step.pass, step.before, std::move(context), fuel, cancel, nullptr, nullptr,
                   followedBy(*step.pass, step.info.graphName, trace));
}

Result<Snapshot> replayRewrites(const Step& step, const CompileTrace& trace, int rewrites, const CancelToken* cancel) {
    if (rewrites <= 0) return step.before;
    if (rewrites >= step.info.rewrites) return step.after;
    const Step partial = runAgain(step, trace, rewrites, cancel);
    if (partial.info.state == StepState::Failed)
        return Error{ErrorCode::Internal, partial.info.error, step.info.name, {}};
    return partial.after;
}

}  // namespace cutaway
