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
    "a sweep does not visit what it made, as in PyTorch, so chains shrink by one link per run";

constexpr CodeRewrite kCanonicalizeAtenIrPassesRewrites[] = {
    {"canonicalize_quant", "Calls of quantized bodies keep their options beside their operands",
     "higher_order.invoke_quant_packed*"}};
constexpr Dependency kRemoveNoopOpsAfter[] = {
    {"canonicalize_aten_ir_passes", "it runs before everything else of its stage"}};
constexpr CodeRewrite kConstantFoldUniformValueRewrites[] = {
    {"uniform_value", "A tensor that holds one value everywhere is made by full"},
    {"zero_product", "A product with the number 0 is a tensor of zeros", "aten.mul.Tensor, aten.mul.Scalar"},
    {"neutral_operand", "Adding zeros and multiplying by ones changes nothing",
     "aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor"},
    {"repeated_view", "A tensor is reinterpreted as a dtype once", "aten.view.dtype"},
    {"unread_view", "Views that nobody reads are dropped", "call"},
    {"unread_source", "With parity: inputs that only dropped views read are dropped", "placeholder, get_attr"}};
constexpr Dependency kPassPattern0After[] = {
    {"auto_chunker", "its rules do not know padded products"},
    {"early_patterns", "attention is looked for without views that do nothing"},
    {"remove_noop_ops", "attention is looked for without operators that do nothing"}};
constexpr Dependency kPassPattern1After[] = {
    {"pass_pattern_0", "attention is known by its softmax, which pass_pattern_1 rewrites"}};
constexpr Dependency kReplaceRandomPassesAfter[] = {{"pass_pattern_0", "dropout in attention is known by its rand"}};
constexpr CodeRewrite kReplaceRandomPassesRewrites[] = {
    {"fuse_seed_creation", "One call makes all seeds of a device", "prims.inductor_seeds.default"}};

constexpr Row kRows[] = {
    Pass{.name = "canonicalize_aten_ir_passes",
         .summary = "Writes calls of quantized bodies in one way",
         .run = canonicalizeQuant,
         .rewrites = kCanonicalizeAtenIrPassesRewrites},
    UserPlace{"joint_custom_pre_pass"},
    Pass{.name = "remove_noop_ops",
         .summary = "Drops operators that return their operand unchanged",
         .run = removeNoopOps,
         .after = kRemoveNoopOpsAfter,
         .operatorRewrites = noopRewrites},
    Pass{.name = "constant_fold_uniform_value",
         .summary = "Computes tensors that hold one value everywhere",
         .run = constantFoldUniformValue,
         .repeats = "the zero of a product with 0 is known to its readers only in the next run, as in PyTorch",
         .rewrites = kConstantFoldUniformValueRewrites},
    Pass{.name = "early_patterns",
         .summary = "Drops views and permutes that cancel out",
         .run = earlyPatterns,
         .rules = earlyRules},
    Pass{.name = "auto_chunker",
         .summary = "Computes what a product blows up a few rows at a time, together with its gradient",
         .run = autoChunker,
         .onRequest = true,
         .repeats = "one product is taken at a time",
         .rules = autoChunkerRules},
    Pass{
        .name = "pass_pattern_0",
        .summary = "Merges conversions, indexes on the right device, and knows that random permutations repeat nothing",
        .run = passPattern0,
        .repeats = kNoRevisit,
        .after = kPassPattern0After,
        .rules = passPattern0Rules},
    Pass{.name = "pass_pattern_1",
         .summary = "Subtracts the maximum of a softmax before scaling",
         .run = rescaleSoftmax,
         .repeats =
             "the sign that a scale leaves behind, a number or a tensor, is a scale like any other, as in PyTorch",
         .after = kPassPattern1After,
         .rules = softmaxRescaleRules},
    Pass{.name = "replace_random_passes",
         .summary = "Draws random numbers from seeds, so that they can be drawn again",
         .run = replaceRandom,
         .after = kReplaceRandomPassesAfter,
         .rules = randomRules,
         .rewrites = kReplaceRandomPassesRewrites},
    UserPlace{"joint_custom_post_pass"}};

constexpr Dependency kStageAfter[] = {{"decompose", "the rules of the joint stage are written for expanded operators"}};

}  // namespace

const Stage kJoint{.name = "joint", .rows = kRows, .after = kStageAfter, .again = true};

}  // namespace cutaway
