// The joint graph, or the inference graph in its place (spec: passes §2.2).
#include "engine/passes/joint/auto_chunker.h"
#include "engine/passes/joint/canonicalize_quant.h"
#include "engine/passes/joint/constant_fold_uniform_value.h"
#include "engine/passes/joint/early_patterns.h"
#include "engine/passes/joint/pass_pattern_0.h"
#include "engine/passes/joint/replace_random.h"
#include "engine/passes/joint/softmax_rescale.h"
#include "engine/passes/operator_rewrites.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/stage.h"

namespace cutaway {
namespace {

// Why a pass may change its own result again (Pass::repeats).
constexpr std::string_view kNoRevisit =
    "as in PyTorch, one run does not visit the calls that it made, so a chain shrinks by one link per run";

constexpr CodeRewrite kCanonicalizeAtenIrPassesRewrites[] = {
    {"canonicalize_quant", "The options of a quantized body stand in its call, as literals",
     "higher_order.invoke_quant_packed*"}};
constexpr Dependency kRemoveNoopOpsAfter[] = {
    {"canonicalize_aten_ir_passes", "it runs before everything else of its stage"}};
constexpr CodeRewrite kConstantFoldUniformValueRewrites[] = {
    {"uniform_value", "A tensor with the same value everywhere is one full"},
    {"zero_product", "A product with the number 0 is a tensor of zeros", "aten.mul.Tensor, aten.mul.Scalar"},
    {"neutral_operand", "Adding zeros and multiplying by ones changes nothing",
     "aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor"},
    {"repeated_view", "Equal reinterpretations of one tensor as a dtype are one", "aten.view.dtype"},
    {"unread_view", "Views that nobody reads are dropped", "call"},
    {"unread_source", "With parity: inputs that only dropped views read are dropped", "placeholder, get_attr"}};
constexpr Dependency kPassPattern0After[] = {
    {"auto_chunker", "its rules have no pattern for padded products"},
    {"early_patterns", "the patterns of attention have no views that cancel out"},
    {"remove_noop_ops", "the patterns of attention have no operators that do nothing"}};
constexpr Dependency kPassPattern1After[] = {
    {"pass_pattern_0", "attention is recognised by its softmax, which pass_pattern_1 rewrites"}};
constexpr Dependency kReplaceRandomPassesAfter[] = {
    {"pass_pattern_0", "dropout in attention is recognised by its rand"}};
constexpr CodeRewrite kReplaceRandomPassesRewrites[] = {
    {"fuse_seed_creation", "One call makes all seeds of a device", "prims.inductor_seeds.default"}};

constexpr Row kJointRows[] = {
    Pass{.name = "canonicalize_aten_ir_passes",
         .summary = "Turns invoke_quant_packed into invoke_quant, with its options as literals",
         .run = canonicalizeQuant,
         .rewrites = kCanonicalizeAtenIrPassesRewrites},
    UserPlace{"joint_custom_pre_pass"},
    Pass{.name = "remove_noop_ops",
         .summary = "Drops operators that return their operand unchanged",
         .run = removeNoopOps,
         .after = kRemoveNoopOpsAfter,
         .operatorRewrites = noopRewrites},
    Pass{.name = "constant_fold_uniform_value",
         .summary = "Folds tensors that hold the same value everywhere",
         .run = constantFoldUniformValue,
         .repeats = "as in PyTorch, readers of a product with 0 see only in the next run that it is zero",
         .rewrites = kConstantFoldUniformValueRewrites},
    Pass{.name = "early_patterns",
         .summary = "Drops views and permutes that cancel out",
         .run = earlyPatterns,
         .rules = earlyRules},
    Pass{
        .name = "auto_chunker",
        .summary =
            "Computes a product that is much larger than its operands a few rows at a time, together with its gradient",
        .run = autoChunker,
        .onRequest = true,
        .repeats = "one product is taken at a time",
        .rules = autoChunkerRules},
    Pass{.name = "pass_pattern_0",
         .summary =
             "Pads matrix products, fuses attention, merges dtype conversions, drops bounds checks of randperm indices",
         .run = passPattern0,
         .repeats = kNoRevisit,
         .after = kPassPattern0After,
         .rules = passPattern0Rules},
    Pass{.name = "pass_pattern_1",
         .summary = "Subtracts the maximum of a softmax before scaling",
         .run = rescaleSoftmax,
         .repeats = "as in PyTorch, the next run takes the sign factor that this one inserted for a scale",
         .after = kPassPattern1After,
         .rules = softmaxRescaleRules},
    Pass{.name = "replace_random_passes",
         .summary = "Draws random numbers from seeds, so that the backward can draw the same ones again",
         .run = replaceRandom,
         .after = kReplaceRandomPassesAfter,
         .rules = randomRules,
         .rewrites = kReplaceRandomPassesRewrites},
    UserPlace{"joint_custom_post_pass"}};

constexpr Dependency kJointAfter[] = {{"decompose", "the rules of the joint stage are written for expanded operators"}};

}  // namespace

const Stage kJoint{.name = "joint", .rows = kJointRows, .after = kJointAfter, .again = true};

}  // namespace cutaway
