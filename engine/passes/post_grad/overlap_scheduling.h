#pragma once
#include "engine/ir/module.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Orders the graph so that collectives run beside other work (step 23 of the post-grad passes): they start as early
/// and are waited for as late as memory allows. One rewrite per node that moves. Costs are estimates (overlap_costs.h),
/// so that the order depends on the graph and the settings alone. With `collective_bucketing` collectives that are
/// alike become one where all that is hidden stays so, one rewrite each; as in the bucket passes in functional form,
/// and never sums together with shares of sums, of which PyTorch makes one and fails. Left out: PyTorch's measuring of
/// products and collectives, taking conversions into a joined gather, and its control_deps calls, which keep a later
/// scheduler from undoing the order: ours has none that would.
///
/// Settings have PyTorch's names (aten_distributed_optimizations) and defaults: max_compute_pre_fetch 200,
/// compute_overlap_multipler 1, max_in_flight_gb 5, max_coll_distance 200, max_memory_increase_gb 1,
/// max_memory_increase_ratio 0.05, enable_fusion_regions true, prioritize_bucketing_during_scheduling true,
/// assume_bucketing_reduces_latency true, collective_bucketing false, bucket_exposed_first true, intra_node_bw 300,
/// inter_node_bw 25. And what PyTorch asks its machine: gpu (v100, a100, h100, b200), dram_gbps, tflops_f32 and its
/// like, tf32, group_size (of groups whose size no call tells: 8).
Result<bool> scheduleOverlap(Module& module, Rewriter& rewriter);

}  // namespace cutaway
