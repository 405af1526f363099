#include "engine/passes/pipeline.h"

#include <chrono>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/passes/dead_code.h"
#include "engine/passes/joint/constant_fold_uniform_value.h"
#include "engine/passes/joint/joint_patterns.h"
#include "engine/passes/post_grad/addmm.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/torch_calls_to_aten.h"

namespace cutaway {
namespace {

bool training(const CompileOptions& options) { return options.mode == Mode::Training; }

constexpr Pass kPipeline[] = {
    // The program, as Python or torch.export wrote it, becomes a functional ATen graph.
    {.stage = "capture", .name = "torch_calls_to_aten", .summary = "Writes calls of Python functions and methods as ATen operators",
     .run = torchCallsToAten, .functional = false},
    {.stage = "capture", .name = "expand_composites",
     .summary = "Writes shorthand operators (linear, layer_norm, attention) as what they stand for",
     .run = expandComposites, .functional = false},
    {.stage = "capture", .name = "functionalize", .summary = "Turns in-place operators into functional ones", .run = functionalize},
    {.stage = "capture", .name = "differentiate", .summary = "Adds the backward: the gradient of every parameter from those of the outputs",
     .run = differentiate, .enabled = training},
    {.stage = "capture", .name = "decompose", .summary = "Expands operators that lowering does not take into smaller ones", .run = decompose},
    {.stage = "capture", .name = "eliminate_dead_code", .summary = "Drops nodes that nobody reads", .run = eliminateDeadCode},

    // The joint graph, or the inference graph in its place (spec: passes §2.2).
    {.stage = "joint", .name = "remove_noop_ops", .summary = "Drops operators that return their operand unchanged", .run = removeNoopOps},
    {.stage = "joint", .name = "constant_fold_uniform_value", .summary = "Computes tensors that hold one value everywhere",
     .run = constantFoldUniformValue},
    {.stage = "joint", .name = "early_patterns", .summary = "Drops views and permutes that cancel out", .run = earlyPatterns},
    {.stage = "joint", .name = "pass_pattern_0", .summary = "Merges chains of dtype conversions", .run = passPattern0},

    // The graph that is lowered (spec: passes §6.2).
    {.stage = "post_grad", .name = "post_grad_remove_noop_ops", .summary = "Drops operators that return their operand unchanged",
     .run = removeNoopOps},
    {.stage = "post_grad", .name = "pass_pattern_2", .summary = "Fuses a bias addition into the matrix product before it", .run = fuseAddmm},
    {.stage = "post_grad", .name = "post_grad_eliminate_dead_code", .summary = "Drops nodes that nobody reads", .run = eliminateDeadCode},
};

Result<void> checkNames(const CompileOptions& options) {
    auto stageKnown = options.onlyStage.empty();
    std::string stages;
    for (const Pass& pass : kPipeline) {
        stageKnown |= pass.stage == options.onlyStage;
        if (stages.find(pass.stage) == std::string::npos) stages += (stages.empty() ? "" : ", ") + std::string(pass.stage);
    }
    if (!stageKnown) return invalidInput("no stage named '" + options.onlyStage + "'; there are: " + stages);
    for (const std::string& name : options.disabledPasses)
        if (std::none_of(std::begin(kPipeline), std::end(kPipeline), [&](const Pass& pass) { return pass.name == name; }))
            return invalidInput("no pass named '" + name + "'", {});
    return {};
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

Result<CompileTrace> runPipeline(const Snapshot& input, const CompileOptions& options, const Progress& progress) {
    CT_TRY_VOID(checkNames(options));
    CompileTrace trace;
    trace.options = options;
    trace.input = input;
    const auto start = std::chrono::steady_clock::now();
    Snapshot current = input;
    int64_t used = 0, position = 0;
    const auto total = static_cast<double>(std::size(kPipeline));
    for (const Pass& pass : kPipeline) {
        progress.say(static_cast<double>(position++) / total, std::string(pass.name));
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "compilation was cancelled", std::string(pass.name), {}};
        if (!options.onlyStage.empty() && pass.stage != options.onlyStage) continue;
        if (pass.enabled && !pass.enabled(options)) continue;
        const bool disabled = std::find(options.disabledPasses.begin(), options.disabledPasses.end(), pass.name) != options.disabledPasses.end();
        Step step;
        if (disabled) {
            step.pass = &pass;
            step.before = step.after = current;
            step.info.stage = std::string(pass.stage);
            step.info.name = std::string(pass.name);
            step.info.summary = std::string(pass.summary);
            step.info.state = StepState::Disabled;
            step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(current->graph().size());
        } else {
            step = runPass(pass, current, options, options.fuel ? std::optional(*options.fuel - used) : std::nullopt, progress.cancel.get());
        }
        used += step.info.rewrites;
        step.info.index = static_cast<int>(trace.steps.size());
        if (trace.stages.empty() || trace.stages.back().stage != pass.stage) {
            StageInfo stage;
            stage.stage = std::string(pass.stage);
            stage.before = opHistogram(*current);
            trace.stages.push_back(std::move(stage));
        }
        current = step.after;
        trace.stages.back().seconds += step.info.milliseconds / 1000;
        const bool failed = step.info.state == StepState::Failed;
        trace.steps.push_back(std::move(step));
        const auto next = static_cast<size_t>(position);
        if (failed || next == std::size(kPipeline) || kPipeline[next].stage != pass.stage) trace.stages.back().after = opHistogram(*current);
        if (failed) break;
    }
    trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return trace;
}

}  // namespace cutaway
