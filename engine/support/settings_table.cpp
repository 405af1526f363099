// Every setting, one row each. Settings are read elsewhere (OptionalPass, CompileRequest).
#include "cutaway/settings.h"

namespace cutaway {
namespace {

using enum Setting::Kind;

constexpr std::string_view kBatches =
    "batch_linear_lhs batch_linear batch_layernorm batch_tanh batch_sigmoid batch_relu batch_detach batch_nan_to_num batch_clamp batch_dropout "
    "group_linear batch_linear_post_grad batch_aten_tanh batch_aten_sigmoid batch_aten_relu batch_aten_add batch_aten_sub batch_aten_div batch_aten_mul";
constexpr std::string_view kSlices =
    "split_cat_to_slices_pass unbind_cat_to_view_pass split_stack_to_cats_pass unbind_stack_to_slices_pass move_reshape_out_of_split_stack_pass";
constexpr std::string_view kDevice = "device pad_mm overlap_scheduling", kRates = "device pad_mm";
constexpr std::string_view kOverlap = "overlap_scheduling";

constexpr std::string_view kPartition = "partition", kFreezing = "freeze", kFusion = "fusion";
constexpr std::string_view kSolvers = "greedy ilp dp dp_knapsack_sliding_hirschberg dynamic_memory_budget_dp";

constexpr std::string_view kAnyPass = "";

constexpr Setting flag(std::string_view owners, std::string_view key, std::string_view initial, std::string_view what) {
    return {owners, key, Flag, initial, what};
}
constexpr Setting integer(std::string_view owners, std::string_view key, std::string_view initial, double least,
                          double most, std::string_view what) {
    return {owners, key, Integer, initial, what, least, most};
}
constexpr Setting real(std::string_view owners, std::string_view key, std::string_view initial, double least,
                       double most, std::string_view what) {
    return {owners, key, Real, initial, what, least, most};
}
constexpr Setting choice(std::string_view owners, std::string_view key, std::string_view initial,
                         std::string_view choices, std::string_view what) {
    return {owners, key, Choice, initial, what, 0, 0, choices};
}
constexpr Setting file(std::string_view owners, std::string_view key, std::string_view initial, std::string_view what) {
    return {owners, key, File, initial, what};
}
/// An option that may be given again and again; `form` is how its value is written.
constexpr Setting list(std::string_view owners, std::string_view key, std::string_view form, std::string_view what) {
    return {owners, key, List, "none", what, 0, 0, form};
}

/// An option with a field in the compile dialog, and the modes in which it means something.
constexpr Setting field(std::string_view label, Setting setting, std::string_view modes = {}) {
    setting.label = label;
    setting.modes = modes;
    return setting;
}

constexpr Setting ofGpus(std::string_view label, Setting setting) {
    setting.ofGpus = true;
    return field(label, setting);
}

constexpr Setting since(Release release, Setting setting) {
    setting.releases = sinceRelease(release);
    return setting;
}

constexpr Setting kSettings[] = {
    // Of the request, which the command line and the dialog make.
    field(
        "Mode",
        choice(
            kRequest, "mode", "inference", "inference training jvp",
            "What the graph is compiled for: its results, gradients too, or (jvp, forward mode) their derivative along a direction.")),
    field(
        "Strict: refuse results that do not depend on the inputs",
        flag(kRequest, "strict", "false", "With --mode jvp, refuse a result that depends on no differentiated input."),
        "jvp"),
    field("Device",
          choice(kRequest, "device", "cpu", "cpu cuda", "What the graph is compiled for: this CPU, or an NVIDIA GPU.")),
    ofGpus(
        "f32 rounded to TF32",
        choice(kRequest, "tf32", "conv", "none conv all",
               "Which f32 library calls on an NVIDIA GPU round to TF32, a few times faster and right to three digits: "
               "none; conv, PyTorch's default, convolutions that do not transpose; all, products too.")),
    field("Freeze: parameters become constants",
          flag(kRequest, "freeze", "false", "Make the parameters constants, and fold what depends on them alone."),
          "inference"),
    field("Reproduce PyTorch's known bugs (parity)",
          flag(kRequest, "parity", "false", "Reproduce PyTorch's behaviour where it is wrong.")),
    field("PyTorch's release",
          choice(kRequest, "pytorch", "2.15", "2.11 2.12 2.13 2.14 2.15", "Compile as this release of PyTorch does.")),
    field("Stages",
          {kRequest, "only", Name, "all stages", "Run this stage alone, on the graph as it is.", 0, 0, "STAGE"}),
    field("Run again what PyTorch ran before it recorded the graph",
          flag(kRequest, "all-stages", "false", "Run also the stages that PyTorch ran before the graph was recorded.")),
    field("End before the schedule",
          flag(kRequest, "passes-only", "false", "End before the schedule, which decides how calls are computed.")),
    list(kRequest, "disable", "NAME", "Skip a pass, or a rule by NAME or PASS/NAME (may be repeated)."),
    list(kRequest, "enable", "NAME", "Run an optional pass: NAME or NAME=key:value,key:value (may be repeated)."),
    list(kRequest, "rules", "FILE", "Apply rules of your own, in the form that `rules` prints (may be repeated)."),
    list(kRequest, "rule-text", "NAME:TEXT", "Inline text of a rule, under a name (may be repeated)."),
    field(
        "Plugins",
        list(
            kRequest, "plugin", "NAME",
            "Run the passes and rules of an installed plugin: NAME, NAME:key=value,key=value with settings, or one of its passes "
            "as PLACE:NAME.PASS:VERSION:HASH (may be repeated).")),
    list(kRequest, "move", "NAME=...",
         "Run a pass elsewhere: NAME=before:OTHER or NAME=after:OTHER (may be repeated)."),
    field("Gradients of inputs",
          list(kRequest, "grad", "NAME", "Differentiate this input, too, beside the parameters (may be repeated)."),
          "training jvp"),
    field(
        "Memory budget",
        real(kRequest, "memory-budget", "1", 0, 1,
             "What the forward may save for the backward: 0 its inputs alone, 1 all that makes the backward fastest."),
        "training"),
    field("Solver", choice(kRequest, "solver", "dp", kSolvers, "How what is saved within a memory budget is chosen."),
          "training"),
    field("Stop after rewrite", integer(kRequest, "fuel", "no limit", 0, kMany,
                                        "Stop after this many rewrites of passes that are not required.")),

    // Of optional passes: --enable PASS=key:value.
    integer(kAnyPass, "counter", "1", 0, 100, "How often the pass runs."),

    choice(kPartition, "partitioner", "min_cut", "min_cut default",
           "min_cut computes again what is cheap; default saves all that the backward reads."),
    flag(kPartition, "cse", "true", "Merges equal calls before the graph is split."),
    flag(kPartition, "aggressive_recomputation", "false",
         "Recomputes everything but matrix products, reductions and random draws."),
    flag(kPartition, "ban_recompute_used_far_apart", "true",
         "Bans recomputing the later readers of a value that is read far apart."),
    flag(kPartition, "ban_recompute_long_fusible_chains", "true",
         "Does not compute long chains of cheap operators again."),
    flag(kPartition, "ban_recompute_materialized_backward", "true",
         "Does not recompute values that the backward has in memory anyway."),
    flag(kPartition, "ban_recompute_not_in_allowlist", "true",
         "Computes again only operators that are known as cheap."),
    flag(kPartition, "ban_recompute_reductions", "true",
         "Does not recompute values that are far smaller than their operands."),
    flag(kPartition, "recompute_views", "false", "Never saves views."),
    flag(kPartition, "treat_parameters_as_free_to_save", "true", "Saving parameters and buffers costs nothing."),
    flag(kPartition, "is_non_builtin_to_include", "false", "Does not compute operators of other libraries again."),
    integer(kPartition, "max_dist_from_bw", "1000", 0, kMany,
            "Values that the backward reads further away than this are not computed again."),
    choice(kPartition, "activation_memory_budget_runtime_estimator", "flops", "flops profile testing",
           "Cost of recomputing a value: flops; profile: measured time; testing: 1 each."),
    {kPartition, "static_lifetime_input_indices", Name, "parameters and buffers",
     "Inputs that stay allocated anyway, for graphs that do not say which are parameters: numbers from 0, separated by blanks.",
     0, 0, "NUMBERS"},

    flag(kFreezing, "layout_optimization", "true",
         "Lets convolutions compute with channels last where that is faster."),
    flag(kFreezing, "force_layout_optimization", "false", "Computes all convolutions with channels last."),
    flag(kFreezing, "enable_linear_binary_folding", "false",
         "Folds constants into matrix products, too, not only into convolutions."),
    flag(kFreezing, "enable_concat_linear", "false", "Joins products of one tensor on the CPU, too."),
    flag(kFreezing, "weight_prepack", "true", "Packs weights for the library that computes with them on the CPU."),
    flag(kFreezing, "fuse_float32_linear", "false",
         "Packs weights of float32 linear layers for oneDNN, too, which computes a function of the result at once."),
    integer(kFreezing, "inputs", "guessed", 0, kMany,
            "How many of the last inputs are given for each run, for graphs that do not say which are parameters."),

    integer(kFusion, "max_nodes", "120", 1, kMany, "The most nodes of the graph in one kernel."),
    integer(kFusion, "tries_per_node", "400", 0, kMany,
            "Bounds compile time: nodes lowered in fusion attempts, per node of the graph."),
    flag(
        kFusion, "emulate_precision_casts", "false",
        "Rounds float16 and bfloat16 after every call in a kernel, as calls one by one do, not only where a value is stored."),

    integer(kBatches, "min_fuse_set_size", "5", 2, kMany, "The fewest calls that are batched."),
    integer(kBatches, "max_fuse_set_size", "300", 2, kMany, "The most calls in one batch; more become several."),
    integer(kBatches, "max_fuse_search_depth", "5", 0, kMany,
            "How many operand levels are searched for calls to batch."),
    integer(kBatches, "max_fuse_tensor_size_group_linear", "4096", 0, kMany,
            "The longest side of a product that is grouped."),
    flag(kBatches, "fuse_nodes_with_same_users", "false", "Batches only calls with the same readers."),
    flag(kBatches, "fuse_nodes_with_same_parent", "false", "Batches only calls on the same operand."),
    flag(kBatches, "shape_broadcast_batch_linear", "false", "Broadcasts biases before they are stacked."),

    integer(kSlices, "threshold_to_cat", "10", 0, kMany, "Fewest neighbouring pieces that become one slice."),
    integer("split_cat_aten_pass", "threshold_to_cat", "10", 1, kMany,
            "Fewest neighbouring pieces that become one slice."),

    real("fx_passes_numeric_check", "precision", "1e-4", 0, kMany,
         "Largest absolute and relative error that counts as equal."),
    integer("fx_passes_numeric_check", "num_iterations", "1", 1, 100, "How many runs are compared."),

    integer("auto_chunker", "num_chunk", "8", 1, kMany, "The number of chunks that the rows are cut into."),
    real("auto_chunker", "output_size_threshold", "1048576", 0, kMany, "Products of fewer bytes are left alone."),
    real("auto_chunker", "amplify_ratio_threshold", "8", 0, kMany,
         "Products that are not this many times as large as their operands are left alone."),

    real(kDevice, "capability", "asked of the device", 1, 100, "Compute capability of the GPU, as 8.6."),
    real(kDevice, "dram_gbps", "asked of the device", 0, kMany,
         "Bandwidth of the device's memory in gigabytes per second."),
    real(kRates, "tflops", "asked of the device", 0, kMany, "Speed of matrix products in TFLOPS, for every dtype."),
    real(kDevice, "tflops_f64", "asked of the device", 0, kMany, "Speed of f64 matrix products in TFLOPS."),
    real(kDevice, "tflops_f32", "asked of the device", 0, kMany, "Speed of f32 matrix products in TFLOPS."),
    real(kDevice, "tflops_tf32", "asked of the device", 0, kMany, "Speed of tf32 matrix products in TFLOPS."),
    real(kDevice, "tflops_f16", "asked of the device", 0, kMany, "Speed of f16 matrix products in TFLOPS."),
    real(kDevice, "tflops_bf16", "asked of the device", 0, kMany, "Speed of bf16 matrix products in TFLOPS."),
    flag("pad_mm overlap_scheduling", "tf32", "with --tf32 all", "Products of f32 may be rounded to TF32."),

    flag("pad_mm", "shape_padding", "true", "Whether products are padded at all."),
    flag("pad_mm", "force_shape_pad", "false", "Pads wherever it is possible."),
    flag("pad_mm", "deterministic", "false", "Pads only where no measurement is needed to decide."),
    flag("pad_mm", "any_device", "false", "Pads on the CPU, too, where PyTorch never does."),
    file("pad_mm", "decisions", "none", "A file of decisions as PyTorch keeps them."),
    real("shape_padding_multiplier", "value", "1.1", 0, kMany, "How many times faster a padded product must be."),
    since(Release::V2_12,
          flag("keep_addmm_fused_for_half_dtypes", "value", "true",
               "GPU: products of float16 and bfloat16 keep their bias, as two calls would round twice.")),
    integer("pad_aten_mm_pass", "k_threshold_to_pad", "8388608", 0, kMany,
            "The least length of the shared dim from which bf16 products are padded."),

    integer("partitioned_scatter", "min_partitions", "2", 1, kMany, "The fewest copies of the target."),
    integer("partitioned_scatter", "max_partitions", "128", 1, kMany, "The most copies of the target."),
    real("partitioned_scatter", "memory_bytes", "0", 0, kMany,
         "Memory of the device in bytes; 0: copies are not limited."),
    real("partitioned_scatter", "memory_budget", "0.1", 0, 1, "The share of that memory that copies may take."),
    integer("partitioned_scatter", "min_index_size", "4096", 0, kMany, "Scatters of fewer values are left alone."),

    integer("decompose_mm_pass", "min_first_dimension_decomposition", "10240", 0, kMany,
            "GPU: smallest first dim that is decomposed."),
    integer("decompose_mm_pass", "max_other_dimension_decomposition", "32", 0, kMany,
            "GPU: other dims must be below this."),
    integer("decompose_mm_pass", "cpu_max_first_dimension_decomposition", "1", 0, kMany, "CPU: largest first dim."),
    integer("decompose_mm_pass", "cpu_max_other_dimension_decomposition", "2048", 0, kMany, "CPU: largest other dim."),
    flag("decompose_mm_pass", "skip_dynamic_shape_dim_check", "false",
         "Takes symbolic sizes to be within every limit."),

    flag("micro_pipeline_tp_pass", "reorder_for_compute_comm_overlap", "false",
         "Orders collectives to run beside products, as PyTorch's option of that name does."),
    real("fuse_ddp_with_concat_op fuse_ddp_with_coalesced_op", "bucket_size_mb", "25", 0, kMany,
         "Megabytes of gradients in one bucket."),
    real("bucket_reduce_scatters bucket_all_reduce bucket_all_gathers", "bucket_cap_mb", "2000", 0, kMany,
         "The most megabytes in one bucket."),

    integer(kOverlap, "max_compute_pre_fetch", "200", 0, kMany, "How many calls ahead a collective may start."),
    real(kOverlap, "compute_overlap_multipler", "1", 0, kMany,
         "Factor on the estimated time of compute that hides collectives."),
    real(kOverlap, "max_in_flight_gb", "5", 0, kMany, "The most gigabytes of collectives in flight at once."),
    integer(kOverlap, "max_coll_distance", "200", 0, kMany, "The most collectives between two that are joined."),
    real(kOverlap, "max_memory_increase_gb", "1", 0, kMany,
         "Gigabytes that the new order may need beyond the old one."),
    real(kOverlap, "max_memory_increase_ratio", "0.05", 0, kMany, "The same as a share of what the old order needs."),
    flag(kOverlap, "enable_fusion_regions", "true", "Moves calls together that become one kernel."),
    flag(kOverlap, "prioritize_bucketing_during_scheduling", "true",
         "Places collectives that can be joined one after the other."),
    flag(kOverlap, "assume_bucketing_reduces_latency", "true",
         "Counts the latency of collectives that will be joined once."),
    flag(kOverlap, "collective_bucketing", "false",
         "Joins collectives of one kind where everything that other work hides stays hidden."),
    flag(kOverlap, "bucket_exposed_first", "true", "Joins collectives that no work hides before the others."),
    real(kOverlap, "intra_node_bw", "300", 0.001, kMany, "Gigabytes per second between the GPUs of a machine."),
    real(kOverlap, "inter_node_bw", "25", 0.001, kMany, "Gigabytes per second between machines."),
    choice(kOverlap, "gpu", "asked of the device", "v100 a100 h100 b200",
           "The GPU whose data sheet the estimates use."),
    integer(kOverlap, "group_size", "8", 1, kMany, "Members of a group whose size no call in the graph tells."),
};

constexpr Switch kSwitches[] = {
    {"device", "Figures of the target GPU, where none can be queried"},
    {"permute_fusion", "Computes products transposed instead of permuting them, before capture; GPU only"},
    {"pad_mm", "Settings of the padding of products"},
    {"shape_padding_multiplier", "How much faster a padded product must be"},
    {"pad_aten_mm_pass", "Pads the long shared dim of bf16 products"},
    {"randperm_index_slice", "Reads the first items of a random permutation without making all of it"},
    {"keep_addmm_fused_for_half_dtypes", "Whether a product of half precision keeps its bias",
     sinceRelease(Release::V2_12)},
    {"var_std_reduction_dedup", "Computes a variance and a deviation of one tensor in one reduction",
     sinceRelease(Release::V2_15)},
    {"reorder_for_locality_in_training", "Runs reorder_for_locality in training, too", sinceRelease(Release::V2_14)},
    {"cudagraphs", "Compiles for CUDA graphs, which are recorded once and replayed"},
    {"is_predispatch", "Runs PyTorch's passes for graphs before dispatch in place of the other pre-grad passes"},
    {"freeze", "Settings of freezing (--freeze)"},
    {"torchao", "Joins quantized layers when it freezes, as PyTorch from 2.14 on does with TorchAO alone"},
    {"partition", "Settings of the partition into forward and backward"},
    {"fusion", "Settings of which nodes share a kernel"},
    {"max_autotune",
     "Switches on what PyTorch's option of that name does; on a GPU products take the fastest algorithm, measured"},
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }
std::span<const Switch> switches() { return kSwitches; }

}  // namespace cutaway
