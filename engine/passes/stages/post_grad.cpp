// The last rewrites of the graph that kernels are made of (spec: passes §6.2).
#include "engine/passes/batch_fusion.h"
#include "engine/passes/dead_code.h"
#include "engine/passes/operator_rewrites.h"
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
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/stage.h"

namespace cutaway {
namespace {

// Why a pass may change its own result again (Pass::repeats).
constexpr std::string_view kSearchDepth =
    "calls are searched to a limited depth and grouped greedily, and fusing some brings others near";
bool isInference(const CompileRequest& request) { return request.mode == Mode::Inference; }

constexpr std::string_view kScatters =
    "aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, aten.as_strided_scatter.default";
constexpr Dependency kViewToReshapeAfter[] = {{"joint", "the rules of the joint stage look for views"}};
constexpr CodeRewrite kRemoveProfilerOpsRewrites[] = {
    {"_record_function_enter", "The profiler watches the original program", "profiler._record_function_enter.default"},
    {"_record_function_enter_new", "The profiler watches the original program",
     "profiler._record_function_enter_new.default"},
    {"_record_function_exit", "The profiler watches the original program",
     "profiler._record_function_exit.default, profiler._record_function_exit._RecordFunction"}};
constexpr CodeRewrite kRemoveAssertOpsRewrites[] = {
    {"_assert_tensor_metadata", "Types have been fixed since capture", "aten._assert_tensor_metadata.default"}};
constexpr CodeRewrite kSplitCatAtenPassRewrites[] = {
    {"merge_split_cat_aten", "Neighbouring pieces of a split are one slice", "aten.cat.default"}};
constexpr CodeRewrite kSelectCatAtenPassRewrites[] = {
    {"merge_select_cat_aten", "All items, one behind the other, are the tensor in another shape", "aten.cat.default"}};
constexpr CodeRewrite kUnbindStackAtenPassRewrites[] = {
    {"merge_unbind_stack_aten", "All items, stacked where they came from, are the tensor", "aten.cat.default"}};
constexpr CodeRewrite kMoveViewAfterCatAtenPassRewrites[] = {
    {"move_view_after_cat_aten", "One reshape of the whole does what one for each piece does", "aten.cat.default"}};
constexpr CodeRewrite kB2bGemmPassRewrites[] = {
    {"b2b_gemm", "The first of two products is computed block by block in the kernel of the second",
     "aten.mm.default"}};
constexpr CodeRewrite kMicroPipelineTpPassRewrites[] = {
    {"fuse_all_gather_matmul", "What is collected is multiplied piece by piece",
     "_c10d_functional.all_gather_into_tensor.default"},
    {"fuse_matmul_reduce_scatter", "A product is shared out piece by piece",
     "_c10d_functional.reduce_scatter_tensor.default"}};
constexpr CodeRewrite kStableSortRewrites[] = {{"stable_topological_sort", "Every node stands behind its operands"}};
constexpr CodeRewrite kMoveConstructorsToCudaRewrites[] = {
    {"move_scalars_to_cuda", "With CUDA graphs, numbers that the caller passes go to the GPU in one copy per dtype",
     "placeholder"},
    {"move_constructors_to_cuda", "A tensor that only the GPU uses is made there", "call"}};
constexpr CodeRewrite kOverlapSchedulingRewrites[] = {
    {"wait_for_copies", "A copy to another device is there before its readers, wherever they come to stand",
     "prims.device_put.default"},
    {"reorder_collective", "A collective starts before work that it can run beside", "_c10d_functional.*"},
    {"reorder_wait", "A result is waited for when other work has been done", "_c10d_functional.wait_tensor.default"},
    {"reorder_call", "What a collective needs comes before it, what needs its result after it", "call, get_attr"},
    {"join_collectives", "Collectives that are hidden alike are one (collective_bucketing)", "_c10d_functional.*"}};
constexpr Dependency kReinplaceInplaceableOpsAfter[] = {
    {kFunctionalPasses, "behind it the graph is not functional any more"}};
constexpr CodeRewrite kReinplaceInplaceableOpsRewrites[] = {
    {"merge_scatters", "A write of what another write has made of the same place is one write", kScatters},
    {"reinplace", "A value that nobody reads any more is written to",
     "aten.index_put.default, aten._unsafe_index_put.default, aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, "
     "aten.as_strided_scatter.default, aten._foreach_*, _c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"}};
constexpr CodeRewrite kDecomposeTritonKernelWrapperFunctionalRewrites[] = {
    {"decompose_triton_kernel_wrapper", "Later passes know the kernel, not its wrapper",
     "higher_order.triton_kernel_wrapper_functional, higher_order.triton_kernel_wrapper_functional.default"}};
constexpr CodeRewrite kDecomposeAutoFunctionalizedRewrites[] = {
    {"decompose_auto_functionalized", "Later passes know the operator, not its wrapper",
     "higher_order.auto_functionalized, higher_order.auto_functionalized.default, higher_order.auto_functionalized_v2, higher_order.auto_functionalized_v2.default"}};
constexpr CodeRewrite kReinplaceFsdpAllGatherRewrites[] = {
    {"unread_item", "A buffer that nobody reads is not taken out of its tuple", "operator.getitem"}};
constexpr CodeRewrite kDecomposeScanToWhileLoopRewrites[] = {
    {"scan_to_while_loop", "A scan is a loop", "higher_order.scan, higher_order.scan.default"}};
constexpr CodeRewrite kDecomposeMapToWhileLoopRewrites[] = {
    {"map_to_while_loop", "A map is a loop", "higher_order.map_impl, higher_order.map_impl.default"}};

constexpr Pass kBatches[] = {{.name = "group_linear",
                              .summary = "Hands products of any shapes to a library at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_linear_post_grad",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_tanh",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_sigmoid",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_relu",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_add",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_sub",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_mul",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites},
                             {.name = "batch_aten_div",
                              .summary = "Computes calls of equal shapes at once",
                              .run = batchFusion,
                              .onRequest = true,
                              .repeats = kSearchDepth,
                              .operatorRewrites = batchRewrites}};

constexpr Pass kSplitsAndCats[] = {{.name = "normalization_aten_pass",
                                    .summary = "Spells splits and concatenations in one way",
                                    .run = normalizeSplits,
                                    .onRequest = true,
                                    .rules = normalizeSplitRules},
                                   {.name = "split_cat_aten_pass",
                                    .summary = "Slices runs of pieces instead of joining them",
                                    .run = mergeSplitCatAten,
                                    .onRequest = true,
                                    .rewrites = kSplitCatAtenPassRewrites},
                                   {.name = "select_cat_aten_pass",
                                    .summary = "Reshapes instead of joining all items",
                                    .run = mergeSelectCatAten,
                                    .onRequest = true,
                                    .rewrites = kSelectCatAtenPassRewrites},
                                   {.name = "unbind_stack_aten_pass",
                                    .summary = "Does not take apart what is only stacked again",
                                    .run = mergeUnbindStackAten,
                                    .onRequest = true,
                                    .rewrites = kUnbindStackAtenPassRewrites},
                                   {.name = "move_view_after_cat_aten_pass",
                                    .summary = "Reshapes once instead of once for each piece",
                                    .run = moveViewAfterCatAten,
                                    .onRequest = true,
                                    .rewrites = kMoveViewAfterCatAtenPassRewrites},
                                   {.name = "decompose_mm_pass",
                                    .summary = "Writes products that wait for memory as sums",
                                    .run = decomposeProducts,
                                    .onRequest = true,
                                    .rules = decomposeProductRules}};

constexpr Pass kSummedGradients[] = {
    {.name = "fuse_ddp_with_concat_op",
     .summary = "Joins the gradients that a group sums",
     .run = fuseDdpByConcat,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default"},
    {.name = "fuse_ddp_with_coalesced_op",
     .summary = "Sums lists of gradients over a group at once",
     .run = fuseDdpByList,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default"},
    {.name = "schedule_comm_wait",
     .summary = "Waits for sums over groups when they are read",
     .run = scheduleCommWait,
     .onRequest = true,
     .starts = "_c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"}};

constexpr Row kRows[] = {
    Pass{.name = "remove_fsdp2_unsharded_param_graph_input_usage",
         .summary = "Reads collected parameters without writing them to a buffer first",
         .run = removeUnshardedParameters,
         .onRequest = true,
         .starts = "fsdp.copy_.default"},
    Pass{.name = "view_to_reshape",
         .summary = "Lets views copy where strides will not allow them",
         .run = viewToReshape,
         .after = kViewToReshapeAfter,
         .starts = "aten.view.default"},
    Pass{.name = "dce",
         .summary = "Drops nodes that nobody reads, before anything else",
         .run = eliminateDeadCode,
         .onRequest = true,
         .rewrites = kDeadCodeRewrites},
    Pass{.name = "reorder_for_locality",
         .summary = "Makes values shortly before they are read",
         .run = reorderForLocality,
         .when = isInference,
         .starts = "call"},
    Pass{.name = "grouped_gemm_pass",
         .summary = "Computes oneDNN's products of one tensor in one call",
         .run = groupLinears,
         .onRequest = true,
         .starts = "mkldnn._linear_pointwise.default"},
    Pass{.name = "concat_linear_woq_int4",
         .summary = "Joins 4-bit weights of products of one tensor",
         .run = concatInt4Linear,
         .onRequest = true,
         .starts = "aten._weight_int4pack_mm_for_cpu.default"},
    UserPlace{"post_grad_custom_pre_pass"},
    Pass{.name = "remove_profiler_ops",
         .summary = "Drops the profiler's marks",
         .run = removeProfilerOps,
         .rewrites = kRemoveProfilerOpsRewrites},
    AnyOrder{kBatches},
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
         .summary = "Counts instead of summing constants, joins concatenations and softmax",
         .run = passPattern1,
         .rules = passPattern1Rules},
    Pass{.name = "post_grad_pass_pattern_2",
         .summary = "Cancels splits with concatenations and fuses additions with products",
         .run = passPattern2,
         .rules = passPattern2Rules},
    Pass{.name = "partitioned_scatter",
         .summary = "Adds many values at few places to several copies of the target",
         .run = partitionScatters,
         .onRequest = true,
         .repeats = "a copy is a target like any other, and may be worth more copies",
         .rules = partitionedScatterRules},
    AnyOrder{kSplitsAndCats},
    Pass{.name = "b2b_gemm_pass",
         .summary = "Computes two products, and what stands between them, in one kernel",
         .run = mergeProductsBackToBack,
         .onRequest = true,
         .rewrites = kB2bGemmPassRewrites},
    Pass{.name = "micro_pipeline_tp_pass",
         .summary = "Multiplies pieces while others are collected or shared out",
         .run = microPipelineProducts,
         .onRequest = true,
         .rewrites = kMicroPipelineTpPassRewrites},
    AnyOrder{kSummedGradients},
    UserPlace{"post_grad_custom_post_pass"},
    Pass{.name = "stable_sort",
         .summary = "Puts every node after its operands",
         .run = stableSort,
         .rewrites = kStableSortRewrites},
    Pass{.name = "move_constructors_to_cuda",
         .summary = "Makes tensors on the GPU that only the GPU uses",
         .run = moveConstructorsToGpu,
         .rewrites = kMoveConstructorsToCudaRewrites},
    Pass{.name = "fake_tensor_update",
         .summary = "Types calls anew whose operands have changed",
         .run = updateFakeTensors,
         .starts = "call"},
    Pass{.name = "bucket_reduce_scatters",
         .summary = "Joins sums over groups of which every member keeps a share",
         .run = bucketReduceScatters,
         .onRequest = true,
         .starts = "_c10d_functional.reduce_scatter_tensor.default"},
    Pass{.name = "bucket_all_reduce",
         .summary = "Joins sums over groups",
         .run = bucketAllReduces,
         .onRequest = true,
         .starts = "_c10d_functional.all_reduce.default"},
    Pass{.name = "bucket_all_gathers",
         .summary = "Joins what is collected from the members of a group",
         .run = bucketAllGathers,
         .onRequest = true,
         .starts = "_c10d_functional.all_gather_into_tensor.default"},
    Pass{
        .name = "overlap_scheduling",
        .summary = "Orders calls so that collectives run beside other work",
        .run = scheduleOverlap,
        .onRequest = true,
        .repeats = "in another order other work is there to run beside a collective, and memory is used at other times",
        .rewrites = kOverlapSchedulingRewrites},
    Pass{.name = "reinplace_inplaceable_ops",
         .summary = "Writes in place where nobody reads the old value",
         .run = reinplaceOps,
         .functional = false,
         .after = kReinplaceInplaceableOpsAfter,
         .rewrites = kReinplaceInplaceableOpsRewrites},
    Pass{.name = "decompose_triton_kernel_wrapper_functional",
         .summary = "Unwraps kernels that write to their operands",
         .run = decomposeTritonWrapper,
         .functional = false,
         .rewrites = kDecomposeTritonKernelWrapperFunctionalRewrites},
    Pass{.name = "decompose_auto_functionalized",
         .summary = "Unwraps operators that write to their operands",
         .run = decomposeAutoFunctionalized,
         .functional = false,
         .rewrites = kDecomposeAutoFunctionalizedRewrites},
    Pass{.name = "reinplace_fsdp_all_gather",
         .summary = "Collects shares of parameters in the buffer that they lie in",
         .run = reinplaceFsdpGathers,
         .onRequest = true,
         .functional = false,
         .rules = fsdpGatherRules,
         .rewrites = kReinplaceFsdpAllGatherRewrites},
    Pass{.name = "decompose_scan_to_while_loop",
         .summary = "Writes scans as loops",
         .run = scanToWhileLoop,
         .functional = false,
         .rewrites = kDecomposeScanToWhileLoopRewrites},
    Pass{.name = "decompose_map_to_while_loop",
         .summary = "Writes maps as loops",
         .run = mapToWhileLoop,
         .functional = false,
         .rewrites = kDecomposeMapToWhileLoopRewrites}};

constexpr Dependency kStageAfter[] = {
    {"decompose", "the rules of the post-grad stage are written for expanded operators"}};

}  // namespace

const Stage kPostGrad{.name = "post_grad", .rows = kRows, .after = kStageAfter};

}  // namespace cutaway
