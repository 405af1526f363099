#include "engine/passes/pipeline.h"

#include <chrono>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/ir/verify.h"
#include "engine/passes/batch_fusion.h"
#include "engine/passes/body_round.h"
#include "engine/passes/dead_code.h"
#include "engine/passes/inline_wrappers.h"
#include "engine/passes/joint/auto_chunker.h"
#include "engine/passes/joint/canonicalize_quant.h"
#include "engine/passes/joint/constant_fold_uniform_value.h"
#include "engine/passes/joint/early_patterns.h"
#include "engine/passes/joint/pass_pattern_0.h"
#include "engine/passes/joint/replace_random.h"
#include "engine/passes/joint/softmax_rescale.h"
#include "engine/passes/lowering_calls.h"
#include "engine/passes/move_to_device.h"
#include "engine/passes/pass_order.h"
#include "engine/passes/pass_settings.h"
#include "engine/passes/post_grad/b2b_gemm.h"
#include "engine/passes/post_grad/bucket_collectives.h"
#include "engine/passes/post_grad/cpu_products.h"
#include "engine/passes/post_grad/ddp_fusion.h"
#include "engine/passes/post_grad/fsdp.h"
#include "engine/passes/post_grad/loops.h"
#include "engine/passes/post_grad/micro_pipeline_tp.h"
#include "engine/passes/post_grad/optional_products.h"
#include "engine/passes/post_grad/overlap_scheduling.h"
#include "engine/passes/post_grad/pass_pattern_1.h"
#include "engine/passes/post_grad/pass_pattern_2.h"
#include "engine/passes/post_grad/reinplace.h"
#include "engine/passes/post_grad/simple_passes.h"
#include "engine/passes/post_grad/split_cat_aten.h"
#include "engine/passes/post_grad/wrappers.h"
#include "engine/passes/pre_grad/conv_bn_eval.h"
#include "engine/passes/pre_grad/default_passes.h"
#include "engine/passes/pre_grad/numeric_check.h"
#include "engine/passes/pre_grad/permute_fusion.h"
#include "engine/passes/pre_grad/split_cat.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/torch_calls_to_aten.h"
#include "engine/passes/user_passes.h"
#include "engine/support/characters.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

bool training(const CompileOptions& options) { return options.mode == Mode::Training; }
bool isInference(const CompileOptions& options) { return options.mode == Mode::Inference; }

bool onGpu(const CompileOptions& options) { return options.target == Target::Cuda; }

/// PyTorch fuses permutes on GPUs only.
bool fusesPermutes(const CompileOptions& options) {
    return options.enabled("permute_fusion") && options.target == Target::Cuda;
}

// Why a pass may change its own result again (Pass::repeats).
constexpr std::string_view kOneSink = "one function sinks per run, as in PyTorch";
constexpr std::string_view kNoRevisit =
    "a sweep does not visit what it made, as in PyTorch, so chains shrink by one link per run";
constexpr std::string_view kSearchDepth =
    "calls are searched to a limited depth and grouped greedily, and fusing some brings others near";

constexpr Pass kPipeline[] = {
    // Calls as Python wrote them, which may mutate (spec: passes §1.2). Folding of batch norms that are modules (PRE-6)
    // has nothing
    // to do here: no graph that Cutaway reads calls modules whose code it has.
    {.stage = "pre_grad",
     .name = "sink_cat_after_pointwise",
     .summary = "Computes relu and tanh before a concatenation instead of after it",
     .run = sinkCatAfterPointwise,
     .functional = false,
     .repeats = kOneSink},
    {.stage = "pre_grad",
     .name = "linear_permute_fusion",
     .summary = "Computes a product transposed instead of permuting it",
     .run = linearPermuteFusion,
     .enabled = fusesPermutes,
     .functional = false},
    {.stage = "pre_grad",
     .name = "permute_linear_fusion",
     .summary = "Reads the operand of linear transposed instead of permuting it",
     .run = permuteLinearFusion,
     .enabled = fusesPermutes,
     .functional = false},
    {.stage = "pre_grad",
     .name = "permute_matmul_fusion",
     .summary = "Reads the operands of products transposed instead of permuting them",
     .run = permuteMatmulFusion,
     .enabled = fusesPermutes,
     .functional = false},
    {.stage = "pre_grad",
     .name = "numpy_compat_normalization",
     .summary = "Renames parameters that are called as in numpy",
     .run = numpyCompatNormalization,
     .functional = false},
    {.stage = "pre_grad",
     .name = "normalization_pass",
     .summary = "Spells splits, concatenations and their kin in one way",
     .run = normalizationPass,
     .optional = 1,
     .functional = false},
    {.stage = "pre_grad",
     .name = "batch_linear_lhs",
     .summary = "Computes products with one left operand at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_linear_lhs", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_linear",
     .summary = "Computes products of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_linear", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_layernorm",
     .summary = "Computes layer norms of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_layernorm", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_tanh",
     .summary = "Computes tanh of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_tanh", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_sigmoid",
     .summary = "Computes sigmoid of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_sigmoid", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_relu",
     .summary = "Computes relu of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_relu", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_detach",
     .summary = "Computes detach of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_detach", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_nan_to_num",
     .summary = "Computes nan_to_num of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_nan_to_num", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_clamp",
     .summary = "Computes clamp of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_clamp", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "batch_dropout",
     .summary = "Computes dropout of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_dropout", module, rewriter); },
     .optional = 2,
     .functional = false,
     .repeats = kSearchDepth},
    {.stage = "pre_grad",
     .name = "remove_split_with_size_one_pass",
     .summary = "Drops splits into one part",
     .run = removeSplitWithSizeOne,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "merge_splits_pass",
     .summary = "Makes one split of a split's split",
     .run = mergeSplits,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "split_cat_pass",
     .summary = "Does not cut apart what is joined again in runs",
     .run = splitCatPass,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "unbind_stack_pass",
     .summary = "Moves a dim instead of taking it apart and stacking it",
     .run = unbindStackPass,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "split_cat_to_slices_pass",
     .summary = "Slices runs of parts instead of joining them",
     .run = splitCatToSlices,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "unbind_cat_to_view_pass",
     .summary = "Slices runs of items instead of joining them",
     .run = unbindCatToView,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "split_stack_to_cats_pass",
     .summary = "Reshapes instead of stacking runs of parts",
     .run = splitStackToCats,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "unbind_stack_to_slices_pass",
     .summary = "Slices instead of stacking runs of items",
     .run = unbindStackToSlices,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "move_reshape_out_of_split_stack_pass",
     .summary = "Reshapes once instead of once for each part",
     .run = moveReshapeOutOfSplitStack,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "merge_getitem_cat_pass",
     .summary = "Does not cut apart what is only joined again",
     .run = mergeGetitemCat,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "mutate_cat_pass",
     .summary = "Slices instead of splitting and joining",
     .run = mutateCat,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "einsum_to_pointwise_pass",
     .summary = "Writes weighted sums as a product and a sum",
     .run = einsumToPointwise,
     .optional = 3,
     .functional = false},
    {.stage = "pre_grad",
     .name = "efficient_conv_bn_eval_pass",
     .summary = "Scales weights instead of normalizing what they give",
     .run = efficientConvBnEval,
     .optional = 4,
     .functional = false},
    {.stage = "pre_grad",
     .name = "apply_gumbel_max_trick_pass",
     .summary = "Samples from logits without computing their softmax",
     .run = applyGumbelMaxTrick,
     .functional = false},
    {.stage = "pre_grad",
     .name = "stable_topological_sort",
     .summary = "Puts every call after its operands",
     .run = stableSort,
     .functional = false},
    {.stage = "pre_grad",
     .name = "quant_lift_up",
     .summary = "Quantizes before views instead of after them",
     .run = quantLiftUp,
     .functional = false},

    // The program, as Python or torch.export wrote it, becomes a functional ATen graph.
    {.stage = "capture",
     .name = "inline_wrappers",
     .summary = "Writes the calls of regions that run in another mode, and of checkpoints, where they stand",
     .run = inlineWrappers,
     .functional = false},
    {.stage = "capture",
     .name = "torch_calls_to_aten",
     .summary = "Writes calls of Python functions and methods as ATen operators",
     .run = torchCallsToAten,
     .functional = false},
    {.stage = "capture",
     .name = "move_to_device",
     .summary = "Types all values for the device that is compiled for",
     .run = moveToDevice,
     .enabled = onGpu,
     .functional = false},
    {.stage = "capture",
     .name = "expand_composites",
     .summary = "Writes shorthand operators (linear, layer_norm, attention) as what they stand for",
     .run = expandComposites,
     .functional = false},
    {.stage = "capture",
     .name = "functionalize",
     .summary = "Turns in-place operators into functional ones",
     .run = functionalize},
    {.stage = "capture",
     .name = "differentiate",
     .summary = "Adds the backward: the gradient of every parameter from those of the outputs",
     .run = differentiate,
     .enabled = training,
     .repeats = "a joint graph is refused: it is differentiated already"},
    {.stage = "capture",
     .name = "decompose",
     .summary = "Expands operators that lowering does not take into smaller ones",
     .run = decompose},
    {.stage = "capture",
     .name = "eliminate_dead_code",
     .summary = "Drops nodes that nobody reads",
     .run = eliminateDeadCode},

    // The joint graph, or the inference graph in its place (spec: passes §2.2).
    {.stage = "joint",
     .name = "canonicalize_aten_ir_passes",
     .summary = "Writes calls of quantized bodies in one way",
     .run = canonicalizeQuant},
    {.stage = "joint",
     .name = "remove_noop_ops",
     .summary = "Drops operators that return their operand unchanged",
     .run = removeNoopOps},
    {.stage = "joint",
     .name = "constant_fold_uniform_value",
     .summary = "Computes tensors that hold one value everywhere",
     .run = constantFoldUniformValue,
     .repeats = "the zero of a product with 0 is known to its readers only in the next run, as in PyTorch"},
    {.stage = "joint",
     .name = "early_patterns",
     .summary = "Drops views and permutes that cancel out",
     .run = earlyPatterns},
    {.stage = "joint",
     .name = "auto_chunker",
     .summary = "Computes what a product blows up a few rows at a time, together with its gradient",
     .run = autoChunker,
     .optional = 1,
     .repeats = "one product is taken at a time"},
    {.stage = "joint",
     .name = "pass_pattern_0",
     .summary = "Merges conversions, indexes on the right device, and knows that random permutations repeat nothing",
     .run = passPattern0,
     .repeats = kNoRevisit},
    {.stage = "joint",
     .name = "pass_pattern_1",
     .summary = "Subtracts the maximum of a softmax before scaling",
     .run = rescaleSoftmax,
     .repeats = "the sign that a scale leaves behind, a number or a tensor, is a scale like any other, as in PyTorch"},
    {.stage = "joint",
     .name = "replace_random_passes",
     .summary = "Draws random numbers from seeds, so that they can be drawn again",
     .run = replaceRandom},

    // The graph that is lowered (spec: passes §6.2).
    {.stage = "post_grad",
     .name = "remove_fsdp2_unsharded_param_graph_input_usage",
     .summary = "Reads collected parameters without writing them to a buffer first",
     .run = removeUnshardedParameters,
     .optional = 12},
    {.stage = "post_grad",
     .name = "view_to_reshape",
     .summary = "Lets views copy where strides will not allow them",
     .run = viewToReshape},
    {.stage = "post_grad",
     .name = "dce",
     .summary = "Drops nodes that nobody reads, before anything else",
     .run = eliminateDeadCode,
     .optional = 5},
    {.stage = "post_grad",
     .name = "reorder_for_locality",
     .summary = "Makes values shortly before they are read",
     .run = reorderForLocality,
     .enabled = isInference},
    {.stage = "post_grad",
     .name = "grouped_gemm_pass",
     .summary = "Computes oneDNN's products of one tensor in one call",
     .run = groupLinears,
     .optional = 14},
    {.stage = "post_grad",
     .name = "concat_linear_woq_int4",
     .summary = "Joins 4-bit weights of products of one tensor",
     .run = concatInt4Linear,
     .optional = 15},
    {.stage = "post_grad",
     .name = "remove_profiler_ops",
     .summary = "Drops the profiler's marks",
     .run = removeProfilerOps},
    {.stage = "post_grad",
     .name = "group_linear",
     .summary = "Hands products of any shapes to a library at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("group_linear", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_linear_post_grad",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_linear_post_grad", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_tanh",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_tanh", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_sigmoid",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_sigmoid", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_relu",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_relu", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_add",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_add", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_sub",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_sub", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_mul",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_mul", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "batch_aten_div",
     .summary = "Computes calls of equal shapes at once",
     .run = [](Module& module, Rewriter& rewriter) { return batchFusion("batch_aten_div", module, rewriter); },
     .optional = 1,
     .repeats = kSearchDepth},
    {.stage = "post_grad",
     .name = "post_grad_remove_noop_ops",
     .summary = "Drops operators that return their operand unchanged",
     .run = removeNoopOps},
    {.stage = "post_grad",
     .name = "remove_assert_ops",
     .summary = "Drops assertions about dtypes and devices",
     .run = removeAssertOps},
    {.stage = "post_grad",
     .name = "mm_plus_mm",
     .summary = "Computes the sum of two products in one kernel",
     .run = mergeAddedProducts,
     .optional = 2},
    {.stage = "post_grad",
     .name = "post_grad_pass_pattern_1",
     .summary = "Counts instead of summing constants, joins concatenations and softmax",
     .run = passPattern1},
    {.stage = "post_grad",
     .name = "post_grad_pass_pattern_2",
     .summary = "Cancels splits with concatenations and fuses additions with products",
     .run = passPattern2},
    {.stage = "post_grad",
     .name = "partitioned_scatter",
     .summary = "Adds many values at few places to several copies of the target",
     .run = partitionScatters,
     .optional = 3,
     .repeats = "a copy is a target like any other, and may be worth more copies"},
    {.stage = "post_grad",
     .name = "normalization_aten_pass",
     .summary = "Spells splits and concatenations in one way",
     .run = normalizeSplits,
     .optional = 4},
    {.stage = "post_grad",
     .name = "split_cat_aten_pass",
     .summary = "Slices runs of pieces instead of joining them",
     .run = mergeSplitCatAten,
     .optional = 4},
    {.stage = "post_grad",
     .name = "select_cat_aten_pass",
     .summary = "Reshapes instead of joining all items",
     .run = mergeSelectCatAten,
     .optional = 4},
    {.stage = "post_grad",
     .name = "unbind_stack_aten_pass",
     .summary = "Does not take apart what is only stacked again",
     .run = mergeUnbindStackAten,
     .optional = 4},
    {.stage = "post_grad",
     .name = "move_view_after_cat_aten_pass",
     .summary = "Reshapes once instead of once for each piece",
     .run = moveViewAfterCatAten,
     .optional = 4},
    {.stage = "post_grad",
     .name = "decompose_mm_pass",
     .summary = "Writes products that wait for memory as sums",
     .run = decomposeProducts,
     .optional = 4},
    {.stage = "post_grad",
     .name = "b2b_gemm_pass",
     .summary = "Computes two products, and what stands between them, in one kernel",
     .run = mergeProductsBackToBack,
     .optional = 6},
    {.stage = "post_grad",
     .name = "micro_pipeline_tp_pass",
     .summary = "Multiplies pieces while others are collected or shared out",
     .run = microPipelineProducts,
     .optional = 10},
    {.stage = "post_grad",
     .name = "fuse_ddp_with_concat_op",
     .summary = "Joins the gradients that a group sums",
     .run = fuseDdpByConcat,
     .optional = 11},
    {.stage = "post_grad",
     .name = "fuse_ddp_with_coalesced_op",
     .summary = "Sums lists of gradients over a group at once",
     .run = fuseDdpByList,
     .optional = 11},
    {.stage = "post_grad",
     .name = "schedule_comm_wait",
     .summary = "Waits for sums over groups when they are read",
     .run = scheduleCommWait,
     .optional = 11},
    {.stage = "post_grad", .name = "stable_sort", .summary = "Puts every node after its operands", .run = stableSort},
    {.stage = "post_grad",
     .name = "move_constructors_to_cuda",
     .summary = "Makes tensors on the GPU that only the GPU uses",
     .run = moveConstructorsToGpu},
    {.stage = "post_grad",
     .name = "fake_tensor_update",
     .summary = "Types calls anew whose operands have changed",
     .run = updateFakeTensors},
    {.stage = "post_grad",
     .name = "bucket_reduce_scatters",
     .summary = "Joins sums over groups of which every member keeps a share",
     .run = bucketReduceScatters,
     .optional = 7},
    {.stage = "post_grad",
     .name = "bucket_all_reduce",
     .summary = "Joins sums over groups",
     .run = bucketAllReduces,
     .optional = 8},
    {.stage = "post_grad",
     .name = "bucket_all_gathers",
     .summary = "Joins what is collected from the members of a group",
     .run = bucketAllGathers,
     .optional = 9},
    {.stage = "post_grad",
     .name = "overlap_scheduling",
     .summary = "Orders calls so that collectives run beside other work",
     .run = scheduleOverlap,
     .optional = 10,
     .repeats = "in another order other work is there to run beside a collective, and memory is used at other times"},
    {.stage = "post_grad",
     .name = "reinplace_inplaceable_ops",
     .summary = "Writes in place where nobody reads the old value",
     .run = reinplaceOps,
     .functional = false},
    {.stage = "post_grad",
     .name = "decompose_triton_kernel_wrapper_functional",
     .summary = "Unwraps kernels that write to their operands",
     .run = decomposeTritonWrapper,
     .functional = false},
    {.stage = "post_grad",
     .name = "decompose_auto_functionalized",
     .summary = "Unwraps operators that write to their operands",
     .run = decomposeAutoFunctionalized,
     .functional = false},
    {.stage = "post_grad",
     .name = "reinplace_fsdp_all_gather",
     .summary = "Collects shares of parameters in the buffer that they lie in",
     .run = reinplaceFsdpGathers,
     .optional = 13,
     .functional = false},
    {.stage = "post_grad",
     .name = "decompose_scan_to_while_loop",
     .summary = "Writes scans as loops",
     .run = scanToWhileLoop,
     .functional = false},
    {.stage = "post_grad",
     .name = "decompose_map_to_while_loop",
     .summary = "Writes maps as loops",
     .run = mapToWhileLoop,
     .functional = false},
    {.stage = "lowering",
     .name = "inline_subgraphs",
     .summary = "Writes graphs that are called where they are called",
     .run = inlineSubgraphs,
     .functional = false},
    {.stage = "lowering",
     .name = "lowering_calls",
     .summary = "Decides what the post-grad patterns have left open",
     .run = lowerCalls,
     .functional = false},
};

/// PyTorch's max_autotune, and the pass that it switches on.
constexpr std::string_view kMaxAutotune = "max_autotune", kOfMaxAutotune = "mm_plus_mm";

/// Names that switch on or set up what is no row of its own.
constexpr std::string_view kSettingsOnly[] = {"device",
                                              "permute_fusion",
                                              "fx_passes_numeric_check",
                                              "pad_mm",
                                              "shape_padding_multiplier",
                                              "pad_aten_mm_pass",
                                              "randperm_index_slice",
                                              "cudagraphs",
                                              "is_predispatch",
                                              kMaxAutotune};

/// Stands for the comparison behind the pre-grad passes (PRE-11), which sees two graphs and changes none.
constexpr Pass kNumericCheck = {.stage = "pre_grad",
                                .name = "fx_passes_numeric_check",
                                .summary = "Runs the graph before and after the stage",
                                .run = [](Module&, Rewriter&) { return Result<bool>(false); },
                                .functional = false};

Step checkNumbers(const Snapshot& before, const Snapshot& after, const OptionalPass& settings, int index) {
    Step step;
    const auto start = std::chrono::steady_clock::now();
    step.pass = &kNumericCheck;
    step.before = step.after = after;
    step.info.index = index;
    step.info.stage = std::string(kNumericCheck.stage);
    step.info.name = std::string(kNumericCheck.name);
    step.info.summary = std::string(kNumericCheck.summary) + ": " + numericCheck(*before, *after, settings);
    step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(after->graph().size());
    step.info.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return step;
}

Result<void> checkName(const std::string& what, const std::string& name, const std::vector<std::string_view>& names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return {};
    Error error{ErrorCode::InvalidInput, "no " + what + " named '" + visibleText(name) + "'", {}, {}};
    if (std::string near = suggestion(name, names); !near.empty()) error.notes.push_back(std::move(near));
    std::string all;
    for (const std::string_view each : names) all += (all.empty() ? "there are: " : ", ") + std::string(each);
    error.notes.push_back(std::move(all));
    return error;
}

Result<void> checkNames(const CompileOptions& options) {
    std::vector<std::string_view> stages, optional;
    for (const Pass& pass : kPipeline) {
        if (stages.empty() || stages.back() != pass.stage) stages.push_back(pass.stage);
        if (pass.optional != 0) optional.push_back(pass.name);
    }
    optional.insert(optional.end(), std::begin(kSettingsOnly), std::end(kSettingsOnly));
    if (!options.onlyStage.empty()) CT_TRY_VOID(checkName("stage", options.onlyStage, stages));
    for (const OptionalPass& wanted : options.enabledPasses) {
        CT_TRY_VOID(checkName("optional pass", wanted.name, optional));
        CT_TRY_VOID(checkSettings(wanted));
    }
    return {};
}

/// All that can be switched off: passes, then rules, then rules behind their pass and a slash.
std::vector<std::string> switchableNames(const UserPasses& own) {
    std::vector<std::string> passes, rules, both;
    const auto addRule = [&](std::string_view pass, std::string_view rule) {
        rules.emplace_back(rule);
        both.push_back(std::string(pass) + "/" + std::string(rule));
    };
    for (const Pass& pass : kPipeline) passes.emplace_back(pass.name);
    for (const UserPlace& place : userPlaces())
        for (const Pass* pass : own.at(place)) passes.emplace_back(pass->name);
    for (const auto& tables : {own.tables(), ruleTables()})
        for (const RuleTable& table : tables)
            for (const Rule& rule : table.rules) addRule(table.pass, rule.name);
    for (const CodeRule& rule : codeRules()) addRule(rule.pass, rule.name);
    for (auto* more : {&rules, &both}) passes.insert(passes.end(), more->begin(), more->end());
    return passes;
}

Result<void> checkDisabled(const CompileOptions& options, const UserPasses& own) {
    std::vector<std::string> all;
    for (const std::string& name : options.disabledPasses) {
        const auto isNamed = [&](const Pass& pass) { return pass.name == name; };
        if (std::any_of(std::begin(kPipeline), std::end(kPipeline), isNamed)) continue;
        // The rules come last: making their tables traces formulas.
        if (all.empty()) all = switchableNames(own);
        if (std::find(all.begin(), all.end(), name) != all.end()) continue;
        Error error{ErrorCode::InvalidInput,
                    "no pass or rule named '" + name + "'",
                    {},
                    {"`cutaway-cli steps` lists the passes, `cutaway-cli rules` the rules"}};
        const std::vector<std::string_view> names(all.begin(), all.end());
        if (std::string near = suggestion(name, names); !near.empty())
            error.notes.insert(error.notes.begin(), std::move(near));
        return error;
    }
    return {};
}

/// Optional passes that stand together, in the order and as often as they are asked for.
void planOptional(std::span<const Pass> block, const CompileOptions& options, std::vector<const Pass*>& plan) {
    for (const OptionalPass& wanted : options.enabledPasses)
        for (const Pass& pass : block)
            if (pass.name == (wanted.name == kMaxAutotune ? kOfMaxAutotune : wanted.name))
                for (int i = 0; i < static_cast<int>(std::clamp(wanted.number("counter", 1), 0.0, 100.0)); ++i)
                    plan.push_back(&pass);
}

/// Of PyTorch's list for graphs before dispatch (is_predispatch, PRE-12), which takes the place of the other pre-grad
/// passes, all but the fusion of like calls is empty; what follows it runs there, too.
bool runsBeforeDispatch(const Pass& pass) {
    return pass.stage != "pre_grad" || pass.optional == 2 || pass.name == "stable_topological_sort" ||
           pass.name == "quant_lift_up";
}

/// Whether PyTorch ran the pass's stage before the graph was recorded, so that it does not run once more.
bool ranBefore(const Pass& pass, const std::string& next) {
    const auto of = [](std::string_view stage) {
        return std::find_if(std::begin(kPipeline), std::end(kPipeline),
                            [&](const Pass& each) { return each.stage == stage; });
    };
    return of(next) != std::end(kPipeline) && of(pass.stage) < of(next);
}

/// The passes of a run of a graph whose next stage is `next`, in running order.
std::vector<const Pass*> planFor(const CompileOptions& options, const std::string& next) {
    std::vector<const Pass*> plan;
    const std::span<const Pass> all = kPipeline;
    for (size_t at = 0; at < all.size();) {
        size_t end = at;
        while (end < all.size() && all[end].optional && all[end].optional == all[at].optional &&
               all[end].stage == all[at].stage)
            ++end;
        if (end > at) planOptional(all.subspan(at, end - at), options, plan);
        else plan.push_back(&all[end++]);
        at = end;
    }
    const bool beforeDispatch = options.enabled("is_predispatch") != nullptr;
    const bool whole = options.onlyStage.empty() && !options.allStages;
    std::erase_if(plan, [&](const Pass* pass) {
        if (whole && ranBefore(*pass, next)) return true;
        return (beforeDispatch && !runsBeforeDispatch(*pass)) ||
               (!options.onlyStage.empty() && pass->stage != options.onlyStage) ||
               (pass->enabled && !pass->enabled(options));
    });
    return plan;
}

/// Adds the joint passes once more, for the graphs that they have made, when the last of them has run.
class JointRounds {
  public:
    explicit JointRounds(const std::vector<const Pass*>& plan) {
        std::copy_if(plan.begin(), plan.end(), std::back_inserter(m_passes), isJoint);
    }
    void beforePass(const Pass& pass, const Snapshot& current) {
        if (isJoint(&pass) && !m_before) m_before = current;
    }
    /// `next`: the place behind the pass that has run.
    Result<void> afterPass(const Pass& pass, size_t next, const Snapshot& current, std::vector<const Pass*>& plan,
                           CompileTrace& trace) {
        if (!isJoint(&pass) || std::any_of(plan.begin() + static_cast<std::ptrdiff_t>(next), plan.end(), isJoint))
            return {};
        const auto round = BodyRound::make(*m_before, *current, m_passes);
        if (!round) return {};
        if (++m_rounds > kMost)
            return Error{ErrorCode::InvalidInput,
                         "the joint passes make new graphs in the graphs that they have made, again and again",
                         round->names(),
                         {"a pass or a rule of your own that makes a graph must not find in it what it looks for"}};
        m_before = current;
        const std::vector<const Pass*> more = round->passes();
        plan.insert(plan.begin() + static_cast<std::ptrdiff_t>(next), more.begin(), more.end());
        trace.rounds.push_back(round);
        return {};
    }

  private:
    static bool isJoint(const Pass* pass) { return pass->stage == "joint"; }
    static constexpr int kMost = 16;  // PyTorch goes on until Python's stack ends
    std::vector<const Pass*> m_passes;
    Snapshot m_before;
    int m_rounds = 0;
};

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

namespace {

bool isDisabled(const Pass& pass, const CompileOptions& options) {
    return std::find(options.disabledPasses.begin(), options.disabledPasses.end(), pass.name) !=
           options.disabledPasses.end();
}

/// The step of a pass that is switched off.
Step skip(const Pass& pass, const Snapshot& current) {
    Step step;
    step.pass = &pass;
    step.before = step.after = current;
    step.info.stage = std::string(pass.stage);
    step.info.name = std::string(pass.name);
    step.info.summary = std::string(pass.summary);
    step.info.state = StepState::Disabled;
    step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(current->graph().size());
    return step;
}

void addStep(CompileTrace& trace, Step step, const Snapshot& before) {
    step.info.index = static_cast<int>(trace.steps.size());
    if (trace.stages.empty() || trace.stages.back().stage != step.info.stage) {
        StageInfo stage;
        stage.stage = step.info.stage;
        stage.before = opHistogram(*before);
        trace.stages.push_back(std::move(stage));
    }
    trace.stages.back().seconds += step.info.milliseconds / 1000;
    trace.steps.push_back(std::move(step));
}

Error cancelledAt(const Pass& pass) {
    return Error{ErrorCode::Cancelled, "compilation was cancelled", std::string(pass.name), {}};
}

/// Fills `trace`; what it holds after an error was done all the same.
Result<void> runInto(CompileTrace& trace, const std::function<void(const StepInfo&)>& ended, const Progress& progress) {
    const CompileOptions& options = trace.options;
    CT_TRY_VOID(checkNames(options));
    CT_TRY(trace.own, UserPasses::make(options));
    CT_TRY_VOID(checkDisabled(options, *trace.own));
    CT_TRY_VOID(checkCalls(*trace.input, Calls::Possible));
    const auto start = std::chrono::steady_clock::now();
    Snapshot current = trace.input;
    int64_t used = 0;
    size_t position = 0;
    std::vector<const Pass*> plan = planFor(options, trace.input->origin.stage);
    trace.own->insertInto(plan);
    CT_TRY_VOID(movePasses(plan, options.moves));
    JointRounds rounds(plan);
    WorkingCopy working;
    while (position < plan.size()) {
        const Pass& pass = *plan[position];
        progress.say(static_cast<double>(position) / static_cast<double>(plan.size()),
                     "pass " + std::to_string(position + 1) + " of " + std::to_string(plan.size()) + ", " +
                         std::string(pass.name));
        ++position;
        if (progress.cancelled()) return cancelledAt(pass);
        rounds.beforePass(pass, current);
        const std::optional<int64_t> fuel = options.fuel ? std::optional(*options.fuel - used) : std::nullopt;
        Step step = isDisabled(pass, options) ? skip(pass, current)
                                              : runPass(pass, current, options, fuel, progress.cancel.get(), &working);
        // An interrupted pass has done some of its rewrites, or has failed for want of the others.
        if (progress.cancelled()) return cancelledAt(pass);
        used += step.info.rewrites;
        const Snapshot before = std::exchange(current, step.after);
        const bool failed = step.info.state == StepState::Failed;
        addStep(trace, std::move(step), before);
        if (ended) ended(trace.steps.back().info);
        const size_t next = position;
        if (!failed) CT_TRY_VOID(rounds.afterPass(pass, next, current, plan, trace));
        const bool stageEnds = next == plan.size() || plan[next]->stage != pass.stage;
        if (failed || stageEnds) trace.stages.back().after = opHistogram(*current);
        trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (failed) return {};
        const OptionalPass* check = options.enabled("fx_passes_numeric_check");
        if (!check || pass.stage != kNumericCheck.stage || !stageEnds) continue;
        trace.steps.push_back(checkNumbers(trace.input, current, *check, static_cast<int>(trace.steps.size())));
        if (ended) ended(trace.steps.back().info);
    }
    return {};
}

}  // namespace

Result<CompileTrace> runPipeline(const Snapshot& input, const CompileOptions& options, const Progress& progress) {
    CompileTrace trace;
    trace.options = options;
    trace.input = input;
    CT_TRY_VOID(runInto(trace, {}, progress));
    return trace;
}

Result<CompileTrace> runPipelineWatched(const Snapshot& input, const CompileOptions& options,
                                        const std::function<void(const StepInfo&)>& ended, const Progress& progress) {
    CompileTrace trace;
    trace.options = options;
    trace.input = input;
    const Result<void> done = runInto(trace, ended, progress);
    if (done) return trace;
    if (done.error().code != ErrorCode::Cancelled || trace.steps.empty()) return done.error();
    trace.cancelled = true;
    trace.stages.back().after = opHistogram(*trace.result());
    return trace;
}

}  // namespace cutaway
