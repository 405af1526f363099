// The last rewrites of the graph that kernels are made of (spec: passes §6.2).
#include "engine/passes/batch_fusion.h"
#include "engine/passes/operator_rewrites.h"
#include "engine/passes/post_grad/b2b_gemm.h"
#include "engine/passes/post_grad/bucket_collectives.h"
#include "engine/passes/post_grad/cpu_products.h"
#include "engine/passes/post_grad/ddp_fusion.h"
#include "engine/passes/post_grad/fsdp.h"
#include "engine/passes/post_grad/loops.h"
#include "engine/passes/post_grad/micro_pipeline_tp.h"
#include "engine/passes/post_grad/mkldnn_fusion.h"
#include "engine/passes/post_grad/optional_products.h"
#include "engine/passes/post_grad/overlap_scheduling.h"
#include "engine/passes/post_grad/pass_pattern_1.h"
#include "engine/passes/post_grad/pass_pattern_2.h"
#include "engine/passes/post_grad/quantized_calls.h"
#include "engine/passes/post_grad/reinplace.h"
#include "engine/passes/post_grad/repeated_collectives.h"
#include "engine/passes/post_grad/simple_passes.h"
#include "engine/passes/post_grad/split_cat_aten.h"
#include "engine/passes/post_grad/wrappers.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/stage.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {
namespace {

// Why a pass may change its own result again (Pass::repeats).
constexpr std::string_view kPostGradSearchDepth =
    "calls are searched to a limited depth and grouped greedily, and fusing some brings others within reach";
bool ordersForLocality(const CompileRequest& request) {
    return request.mode != Mode::Training || request.enabled("reorder_for_locality_in_training");
}

constexpr std::string_view kScatters =
    "aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, aten.as_strided_scatter.default";
constexpr Dependency kViewToReshapeAfter[] = {{"joint", "the rules of the joint stage look for views"}};
constexpr CodeRewrite kRemoveProfilerOpsRewrites[] = {
    {"_record_function_enter", "Profiler marks mean nothing in compiled code",
     "profiler._record_function_enter.default"},
    {"_record_function_enter_new", "Profiler marks mean nothing in compiled code",
     "profiler._record_function_enter_new.default"},
    {"_record_function_exit", "Profiler marks mean nothing in compiled code",
     "profiler._record_function_exit.default, profiler._record_function_exit._RecordFunction"}};
constexpr CodeRewrite kRemoveAssertOpsRewrites[] = {
    {"_assert_tensor_metadata", "Types do not change after capture", "aten._assert_tensor_metadata.default"}};
constexpr CodeRewrite kSplitCatAtenPassRewrites[] = {
    {"merge_split_cat_aten", "Neighbouring pieces of a split are one slice", "aten.cat.default"}};
constexpr CodeRewrite kSelectCatAtenPassRewrites[] = {
    {"merge_select_cat_aten", "All items along a dim, concatenated along the next, are a reshape of the tensor",
     "aten.cat.default"}};
constexpr CodeRewrite kUnbindStackAtenPassRewrites[] = {
    {"merge_unbind_stack_aten", "All items of a tensor, stacked along the same dim again, are the tensor",
     "aten.cat.default"}};
constexpr CodeRewrite kMoveViewAfterCatAtenPassRewrites[] = {
    {"move_view_after_cat_aten", "One reshape of the whole replaces one reshape per piece", "aten.cat.default"}};
constexpr CodeRewrite kB2bGemmPassRewrites[] = {
    {"b2b_gemm", "The first of two products is computed block by block in the kernel of the second",
     "aten.mm.default"}};
constexpr CodeRewrite kMicroPipelineTpPassRewrites[] = {
    {"fuse_all_gather_matmul", "A gathered operand is multiplied piece by piece, as it arrives",
     "_c10d_functional.all_gather_into_tensor.default"},
    {"fuse_matmul_reduce_scatter", "A product is reduced and scattered piece by piece",
     "_c10d_functional.reduce_scatter_tensor.default"}};
constexpr CodeRewrite kStableSortRewrites[] = {{"stable_topological_sort", "Every node stands behind its operands"}};
constexpr CodeRewrite kMoveConstructorsToCudaRewrites[] = {
    {"move_scalars_to_cuda", "With CUDA graphs, numbers that the caller passes go to the GPU in one copy per dtype",
     "placeholder"},
    {"move_constructors_to_cuda", "A tensor that only the GPU uses is created there", "call"}};
constexpr CodeRewrite kOverlapSchedulingRewrites[] = {
    {"wait_for_copies", "A copy to another device is waited for before its readers, wherever these move",
     "prims.device_put.default"},
    {"reorder_collective", "A collective starts before work that it can run beside", "_c10d_functional.*"},
    {"reorder_wait", "A collective is waited for only after other work is done",
     "_c10d_functional.wait_tensor.default"},
    {"reorder_call", "Operands of a collective move before it, readers of its result behind it", "call, get_attr"},
    {"join_collectives", "Collectives of one kind that the same work hides become one (collective_bucketing)",
     "_c10d_functional.*"}};
constexpr Dependency kReinplaceInplaceableOpsAfter[] = {
    {kFunctionalPasses, "after it the graph is no longer functional"}};
constexpr CodeRewrite kReinplaceInplaceableOpsRewrites[] = {
    {"merge_scatters", "Scatters into the same part of a tensor stand together, so that they can be one write",
     kScatters},
    {"reinplace", "A value that nobody reads later is overwritten in place",
     "aten.index_put.default, aten._unsafe_index_put.default, aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, "
     "aten.as_strided_scatter.default, aten._foreach_*, _c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"}};
constexpr CodeRewrite kDecomposeTritonKernelWrapperFunctionalRewrites[] = {
    {"decompose_triton_kernel_wrapper", "Later passes know the kernel, not its wrapper",
     "higher_order.triton_kernel_wrapper_functional, higher_order.triton_kernel_wrapper_functional.default"}};
constexpr CodeRewrite kDecomposeAutoFunctionalizedRewrites[] = {
    {"decompose_auto_functionalized", "Later passes know the operator, not its wrapper",
     "higher_order.auto_functionalized, higher_order.auto_functionalized.default, higher_order.auto_functionalized_v2, higher_order.auto_functionalized_v2.default"}};
constexpr CodeRewrite kReinplaceFsdpAllGatherRewrites[] = {
    {"unread_item", "A getitem that nobody reads goes", "operator.getitem"}};
constexpr CodeRewrite kDecomposeScanToWhileLoopRewrites[] = {
    {"scan_to_while_loop", "A scan is written as a while_loop", "higher_order.scan, higher_order.scan.default"}};
constexpr CodeRewrite kDecomposeMapToWhileLoopRewrites[] = {
    {"map_to_while_loop", "A map is written as a while_loop", "higher_order.map_impl, higher_order.map_impl.default"}};

constexpr Pass kPostGradBatches[] = {
    {.name = "group_linear",
     .summary = "Groups products of any shapes in one fbgemm.gmm call (run here one by one)",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_linear_post_grad",
     .summary = "Joins independent mm/addmm calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_tanh",
     .summary = "Joins independent tanh calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_sigmoid",
     .summary = "Joins independent sigmoid calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_relu",
     .summary = "Joins independent relu calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_add",
     .summary = "Joins independent add calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_sub",
     .summary = "Joins independent sub calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_mul",
     .summary = "Joins independent mul calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites},
    {.name = "batch_aten_div",
     .summary = "Joins independent div calls of equal shape by stacking their operands",
     .run = batchFusion,
     .onRequest = true,
     .repeats = kPostGradSearchDepth,
     .operatorRewrites = batchRewrites}};

constexpr Pass kPostGradSplitsAndCats[] = {
    {.name = "normalization_aten_pass",
     .summary = "Brings splits and concatenations into one form",
     .run = normalizeSplits,
     .onRequest = true,
     .rules = normalizeSplitRules},
    {.name = "split_cat_aten_pass",
     .summary = "Replaces concatenated neighbouring pieces of a split by one slice",
     .run = mergeSplitCatAten,
     .onRequest = true,
     .rewrites = kSplitCatAtenPassRewrites},
    {.name = "select_cat_aten_pass",
     .summary = "Replaces the concatenation of all items of a tensor by a reshape",
     .run = mergeSelectCatAten,
     .onRequest = true,
     .rewrites = kSelectCatAtenPassRewrites},
    {.name = "unbind_stack_aten_pass",
     .summary = "Removes an unbind whose items are only stacked again",
     .run = mergeUnbindStackAten,
     .onRequest = true,
     .rewrites = kUnbindStackAtenPassRewrites},
    {.name = "move_view_after_cat_aten_pass",
     .summary = "Reshapes a concatenation once instead of each of its pieces",
     .run = moveViewAfterCatAten,
     .onRequest = true,
     .rewrites = kMoveViewAfterCatAtenPassRewrites},
    {.name = "decompose_mm_pass",
     .summary = "Writes products that are limited by memory as a multiplication and a sum",
     .run = decomposeProducts,
     .onRequest = true,
     .rules = decomposeProductRules}};

constexpr Pass kSummedGradients[] = {
    {.name = "fuse_ddp_with_concat_op",
     .summary = "Joins gradients that are all-reduced into one tensor",
     .run = fuseDdpByConcat,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default"},
    {.name = "fuse_ddp_with_coalesced_op",
     .summary = "All-reduces lists of gradients in one call",
     .run = fuseDdpByList,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default"},
    {.name = "schedule_comm_wait",
     .summary = "Waits for all-reduces only before their first reader",
     .run = scheduleCommWait,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"}};

constexpr Row kPostGradRows[] = {
    Pass{.name = "remove_fsdp2_unsharded_param_graph_input_usage",
         .summary = "Reads gathered parameters directly instead of through a buffer",
         .run = removeUnshardedParameters,
         .onRequest = true,
         .starts = "fsdp.copy_.default"},
    Pass{.name = "view_to_reshape",
         .summary = "Turns views into reshapes, which copy where strides allow no view",
         .run = viewToReshape,
         .prepares = true,
         .after = kViewToReshapeAfter,
         .starts = "aten.view.default"},
    Pass{.name = "dce",
         .summary = "Drops nodes that nobody reads, before anything else",
         .run = eliminateDeadCode,
         .onRequest = true,
         .rewrites = kDeadCodeRewrites},
    Pass{.name = "reorder_for_locality",
         .summary = "Moves calls directly before their first reader",
         .run = reorderForLocality,
         .when = ordersForLocality,
         .starts = "call"},
    Pass{.name = "grouped_gemm_pass",
         .summary = "Computes several oneDNN products of one tensor in one call",
         .run = groupLinears,
         .onRequest = true,
         .starts = "mkldnn._linear_pointwise.default"},
    Pass{.name = "concat_linear_woq_int4",
         .summary = "Joins the 4-bit weights of several products of one tensor",
         .run = concatInt4Linear,
         .onRequest = true,
         .starts = "aten._weight_int4pack_mm_for_cpu.default"},
    UserPlace{"post_grad_custom_pre_pass"},
    Pass{.name = "remove_profiler_ops",
         .summary = "Drops the record_function calls of torch.profiler",
         .run = removeProfilerOps,
         .rewrites = kRemoveProfilerOpsRewrites},
    AnyOrder{kPostGradBatches},
    Pass{.name = "post_grad_remove_noop_ops",
         .summary = "Drops operators that return their operand unchanged",
         .run = removeNoopOps,
         .operatorRewrites = noopRewrites},
    Pass{.name = "remove_assert_ops",
         .summary = "Drops assertions about dtypes and devices",
         .run = removeAssertOps,
         .rewrites = kRemoveAssertOpsRewrites},
    Pass{.name = "mm_plus_mm",
         .summary = "Computes the sum of two products in one kernel",
         .run = mergeAddedProducts,
         .onRequest = true,
         .alsoRequestedBy = "max_autotune",
         .rules = addedProductRules},
    Pass{.name = "post_grad_pass_pattern_1",
         .summary = "Replaces running sums of constants, joins concatenations, computes softmax in one pass",
         .run = passPattern1,
         .rules = passPattern1Rules},
    Pass{.name = "mkldnn_fusion",
         .summary = "Fuses activations into packed convolutions and linear layers",
         .run = fuseIntoPackedCalls,
         .rules = mkldnnFusionRules},
    Pass{.name = "quantized_data",
         .summary = "Moves and compares quantized tensors without dequantizing them",
         .run = simplifyQuantizedData,
         .rules = quantizedDataRules},
    Pass{.name = "post_grad_pass_pattern_2",
         .summary = "Removes splits and concatenations that cancel out, fuses additions into products",
         .run = passPattern2,
         .rules = passPattern2Rules},
    Pass{.name = "partitioned_scatter",
         .summary = "Spreads contended scatter-adds over several copies of the target, which are summed",
         .run = partitionScatters,
         .onRequest = true,
         .repeats = "a copy is a target, too, for which more copies may pay",
         .rules = partitionedScatterRules},
    AnyOrder{kPostGradSplitsAndCats},
    Pass{.name = "b2b_gemm_pass",
         .summary = "Computes two products, and the pointwise calls between them, in one kernel",
         .run = mergeProductsBackToBack,
         .onRequest = true,
         .rewrites = kB2bGemmPassRewrites},
    Pass{.name = "micro_pipeline_tp_pass",
         .summary = "Pipelines matrix products with all-gather and reduce-scatter",
         .run = microPipelineProducts,
         .onRequest = true,
         .rewrites = kMicroPipelineTpPassRewrites},
    AnyOrder{kSummedGradients},
    UserPlace{"post_grad_custom_post_pass"},
    Pass{.name = "stable_sort",
         .summary = "Sorts nodes so that each stands after its operands",
         .run = stableSort,
         .rewrites = kStableSortRewrites},
    Pass{.name = "move_constructors_to_cuda",
         .summary = "Creates tensors on the GPU if only the GPU uses them",
         .run = moveConstructorsToGpu,
         .rewrites = kMoveConstructorsToCudaRewrites},
    Pass{.name = "fake_tensor_update",
         .summary = "Infers again the types of calls whose operands have changed",
         .run = updateFakeTensors,
         .starts = "call"},
    Pass{.name = "deduplicate_wait_tensors",
         .summary = "Waits once for what several calls wait for",
         .run = deduplicateWaits,
         .releases = sinceRelease(Release::V2_15),
         .starts = "_c10d_functional.wait_tensor.default"},
    Pass{.name = "dedup_reduce_scatters",
         .summary = "Adds tensors before they are reduced and scattered, in place of their results",
         .run = shareReduceScatters,
         .onRequest = true,
         .releases = sinceRelease(Release::V2_13),
         .rules = sharedReduceScatterRules},
    Pass{.name = "bucket_reduce_scatters",
         .summary = "Joins several reduce_scatters into one",
         .run = bucketReduceScatters,
         .onRequest = true,
         .starts = "_c10d_functional.reduce_scatter_tensor.default"},
    Pass{.name = "bucket_all_reduce",
         .summary = "Joins several all_reduces into one",
         .run = bucketAllReduces,
         .onRequest = true,
         .starts = "_c10d_functional.all_reduce.default"},
    Pass{.name = "bucket_all_gathers",
         .summary = "Joins several all_gathers into one",
         .run = bucketAllGathers,
         .onRequest = true,
         .starts = "_c10d_functional.all_gather_into_tensor.default"},
    Pass{.name = "overlap_scheduling",
         .summary = "Orders calls so that collectives run beside other work",
         .run = scheduleOverlap,
         .onRequest = true,
         .repeats = "a new order offers other work to run beside a collective, and uses memory at other times",
         .rewrites = kOverlapSchedulingRewrites},
    Pass{.name = "reinplace_inplaceable_ops",
         .summary = "Writes in place where nobody reads the old value",
         .run = reinplaceOps,
         .functional = false,
         .after = kReinplaceInplaceableOpsAfter,
         .rewrites = kReinplaceInplaceableOpsRewrites},
    Pass{.name = "mkldnn_inplace_fusion",
         .summary = "Adds a convolution's result in place to a tensor that nobody reads afterwards",
         .run = addConvolutionsInPlace,
         .functional = false,
         .after = kReinplaceInplaceableOpsAfter,
         .starts = "mkldnn._convolution_pointwise.binary"},
    Pass{.name = "decompose_triton_kernel_wrapper_functional",
         .summary = "Unwraps Triton kernels that write to their operands",
         .run = decomposeTritonWrapper,
         .functional = false,
         .rewrites = kDecomposeTritonKernelWrapperFunctionalRewrites},
    Pass{.name = "decompose_auto_functionalized",
         .summary = "Unwraps operators that write to their operands",
         .run = decomposeAutoFunctionalized,
         .functional = false,
         .rewrites = kDecomposeAutoFunctionalizedRewrites},
    Pass{.name = "reinplace_fsdp_all_gather",
         .summary = "All-gathers parameter shards in place, in the buffer that already holds the member's own",
         .run = reinplaceFsdpGathers,
         .onRequest = true,
         .functional = false,
         .rules = fsdpGatherRules,
         .rewrites = kReinplaceFsdpAllGatherRewrites},
    Pass{.name = "decompose_scan_to_while_loop",
         .summary = "Writes scans as while_loops",
         .run = scanToWhileLoop,
         .functional = false,
         .rewrites = kDecomposeScanToWhileLoopRewrites},
    Pass{.name = "decompose_map_to_while_loop",
         .summary = "Writes maps as while_loops",
         .run = mapToWhileLoop,
         .functional = false,
         .rewrites = kDecomposeMapToWhileLoopRewrites}};

constexpr Dependency kPostGradAfter[] = {
    {"decompose", "the rules of the post-grad stage are written for expanded operators"}};

}  // namespace

const Stage kPostGrad{.name = "post_grad", .rows = kPostGradRows, .after = kPostGradAfter};

}  // namespace cutaway
