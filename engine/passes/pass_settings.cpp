#include "engine/passes/pass_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/support/characters.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

using enum PassSetting::Kind;

constexpr std::string_view kBatches =
    "batch_linear_lhs batch_linear batch_layernorm batch_tanh batch_sigmoid batch_relu batch_detach batch_nan_to_num batch_clamp batch_dropout "
    "group_linear batch_linear_post_grad batch_aten_tanh batch_aten_sigmoid batch_aten_relu batch_aten_add batch_aten_sub batch_aten_div batch_aten_mul";
constexpr std::string_view kSlices =
    "split_cat_to_slices_pass unbind_cat_to_view_pass split_stack_to_cats_pass unbind_stack_to_slices_pass move_reshape_out_of_split_stack_pass";
constexpr std::string_view kDevice = "device pad_mm overlap_scheduling", kRates = "device pad_mm";
constexpr std::string_view kOverlap = "overlap_scheduling";
constexpr double kMany = 1e15;

constexpr PassSetting kSettings[] = {
    {.owners = "",
     .key = "counter",
     .kind = Integer,
     .initial = "1",
     .least = 0,
     .most = 100,
     .what = "How often the pass runs."},

    {.owners = kBatches,
     .key = "min_fuse_set_size",
     .kind = Integer,
     .initial = "5",
     .least = 2,
     .most = kMany,
     .what = "Fewer calls than this are not computed at once."},
    {.owners = kBatches,
     .key = "max_fuse_set_size",
     .kind = Integer,
     .initial = "300",
     .least = 2,
     .most = kMany,
     .what = "More calls than this become several groups."},
    {.owners = kBatches,
     .key = "max_fuse_search_depth",
     .kind = Integer,
     .initial = "5",
     .least = 0,
     .most = kMany,
     .what = "How many operands upward a call is looked for."},
    {.owners = kBatches,
     .key = "max_fuse_tensor_size_group_linear",
     .kind = Integer,
     .initial = "4096",
     .least = 0,
     .most = kMany,
     .what = "The longest side of a product that is handed to a library in a group."},
    {.owners = kBatches,
     .key = "fuse_nodes_with_same_users",
     .kind = Flag,
     .initial = "false",
     .what = "Only calls with the same readers are computed at once."},
    {.owners = kBatches,
     .key = "fuse_nodes_with_same_parent",
     .kind = Flag,
     .initial = "false",
     .what = "Only calls on the same operand are computed at once."},
    {.owners = kBatches,
     .key = "shape_broadcast_batch_linear",
     .kind = Flag,
     .initial = "false",
     .what = "Biases are broadcast before they are stacked."},

    {.owners = kSlices,
     .key = "threshold_to_cat",
     .kind = Integer,
     .initial = "10",
     .least = 0,
     .most = kMany,
     .what = "The most pieces that are joined again."},
    {.owners = "split_cat_aten_pass",
     .key = "threshold_to_cat",
     .kind = Integer,
     .initial = "10",
     .least = 1,
     .most = kMany,
     .what = "The most pieces that are joined again."},

    {.owners = "fx_passes_numeric_check",
     .key = "precision",
     .kind = Real,
     .initial = "1e-4",
     .least = 0,
     .most = kMany,
     .what = "The largest error that is good."},
    {.owners = "fx_passes_numeric_check",
     .key = "num_iterations",
     .kind = Integer,
     .initial = "1",
     .least = 1,
     .most = 100,
     .what = "How many runs are compared."},

    {.owners = "auto_chunker",
     .key = "num_chunk",
     .kind = Integer,
     .initial = "8",
     .least = 1,
     .most = kMany,
     .what = "Into how many parts the rows are dealt."},
    {.owners = "auto_chunker",
     .key = "output_size_threshold",
     .kind = Real,
     .initial = "1048576",
     .least = 0,
     .most = kMany,
     .what = "Products of fewer bytes are left alone."},
    {.owners = "auto_chunker",
     .key = "amplify_ratio_threshold",
     .kind = Real,
     .initial = "8",
     .least = 0,
     .most = kMany,
     .what = "Products that are not so many times as large as their operands are left alone."},

    {.owners = kDevice,
     .key = "capability",
     .kind = Real,
     .initial = "asked of the device",
     .least = 1,
     .most = 100,
     .what = "Compute capability of the GPU, as 8.6."},
    {.owners = kDevice,
     .key = "dram_gbps",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "Gigabytes that the device reads from its memory in a second."},
    {.owners = kRates,
     .key = "tflops",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "Operations on products in a second, in 10^12, of every dtype."},
    {.owners = kDevice,
     .key = "tflops_f64",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "The same for f64."},
    {.owners = kDevice,
     .key = "tflops_f32",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "The same for f32."},
    {.owners = kDevice,
     .key = "tflops_tf32",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "The same for f32 rounded to tf32."},
    {.owners = kDevice,
     .key = "tflops_f16",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "The same for f16."},
    {.owners = kDevice,
     .key = "tflops_bf16",
     .kind = Real,
     .initial = "asked of the device",
     .least = 0,
     .most = kMany,
     .what = "The same for bf16."},
    {.owners = "pad_mm overlap_scheduling",
     .key = "tf32",
     .kind = Flag,
     .initial = "false",
     .what = "Products of f32 may be rounded to tf32."},

    {.owners = "pad_mm",
     .key = "shape_padding",
     .kind = Flag,
     .initial = "true",
     .what = "Whether products are padded at all."},
    {.owners = "pad_mm",
     .key = "force_shape_pad",
     .kind = Flag,
     .initial = "false",
     .what = "Pads wherever it is possible."},
    {.owners = "pad_mm",
     .key = "deterministic",
     .kind = Flag,
     .initial = "false",
     .what = "Decides nothing that would have to be measured."},
    {.owners = "pad_mm",
     .key = "any_device",
     .kind = Flag,
     .initial = "false",
     .what = "Pads on the CPU, too, where PyTorch never does."},
    {.owners = "pad_mm",
     .key = "decisions",
     .kind = File,
     .initial = "none",
     .what = "A file of decisions as PyTorch keeps them."},
    {.owners = "shape_padding_multiplier",
     .key = "value",
     .kind = Real,
     .initial = "1.1",
     .least = 0,
     .most = kMany,
     .what = "How many times faster a padded product must be."},
    {.owners = "pad_aten_mm_pass",
     .key = "k_threshold_to_pad",
     .kind = Integer,
     .initial = "8388608",
     .least = 0,
     .most = kMany,
     .what = "From which length on the shared dim of bf16 products is padded."},

    {.owners = "partitioned_scatter",
     .key = "min_partitions",
     .kind = Integer,
     .initial = "2",
     .least = 1,
     .most = kMany,
     .what = "Fewer copies of the target are not worth it."},
    {.owners = "partitioned_scatter",
     .key = "max_partitions",
     .kind = Integer,
     .initial = "128",
     .least = 1,
     .most = kMany,
     .what = "The most copies of the target."},
    {.owners = "partitioned_scatter",
     .key = "memory_bytes",
     .kind = Real,
     .initial = "0",
     .least = 0,
     .most = kMany,
     .what = "Memory of the device; 0: not limited."},
    {.owners = "partitioned_scatter",
     .key = "memory_budget",
     .kind = Real,
     .initial = "0.1",
     .least = 0,
     .most = 1,
     .what = "The share of that memory that copies may take."},
    {.owners = "partitioned_scatter",
     .key = "min_index_size",
     .kind = Integer,
     .initial = "4096",
     .least = 0,
     .most = kMany,
     .what = "Fewer added values are left alone."},

    {.owners = "decompose_mm_pass",
     .key = "min_first_dimension_decomposition",
     .kind = Integer,
     .initial = "10240",
     .least = 0,
     .most = kMany,
     .what = "The fewest rows on the GPU."},
    {.owners = "decompose_mm_pass",
     .key = "max_other_dimension_decomposition",
     .kind = Integer,
     .initial = "32",
     .least = 0,
     .most = kMany,
     .what = "Other sizes on the GPU are below this."},
    {.owners = "decompose_mm_pass",
     .key = "cpu_max_first_dimension_decomposition",
     .kind = Integer,
     .initial = "1",
     .least = 0,
     .most = kMany,
     .what = "The most rows on the CPU."},
    {.owners = "decompose_mm_pass",
     .key = "cpu_max_other_dimension_decomposition",
     .kind = Integer,
     .initial = "2048",
     .least = 0,
     .most = kMany,
     .what = "The largest other size on the CPU."},
    {.owners = "decompose_mm_pass",
     .key = "skip_dynamic_shape_dim_check",
     .kind = Flag,
     .initial = "false",
     .what = "Symbolic sizes keep to every limit."},

    {.owners = "micro_pipeline_tp_pass",
     .key = "reorder_for_compute_comm_overlap",
     .kind = Flag,
     .initial = "false",
     .what = "Collectives are ordered to run beside products, as PyTorch's option of that name does."},
    {.owners = "fuse_ddp_with_concat_op fuse_ddp_with_coalesced_op",
     .key = "bucket_size_mb",
     .kind = Real,
     .initial = "25",
     .least = 0,
     .most = kMany,
     .what = "Megabytes of gradients that are joined."},
    {.owners = "bucket_reduce_scatters bucket_all_reduce bucket_all_gathers",
     .key = "bucket_cap_mb",
     .kind = Real,
     .initial = "2000",
     .least = 0,
     .most = kMany,
     .what = "Megabytes that are joined at most."},

    {.owners = kOverlap,
     .key = "max_compute_pre_fetch",
     .kind = Integer,
     .initial = "200",
     .least = 0,
     .most = kMany,
     .what = "How many calls ahead a collective may start."},
    {.owners = kOverlap,
     .key = "compute_overlap_multipler",
     .kind = Real,
     .initial = "1",
     .least = 0,
     .most = kMany,
     .what = "By how much calls are taken to be longer than estimated."},
    {.owners = kOverlap,
     .key = "max_in_flight_gb",
     .kind = Real,
     .initial = "5",
     .least = 0,
     .most = kMany,
     .what = "Gigabytes of collectives that are under way at once."},
    {.owners = kOverlap,
     .key = "max_coll_distance",
     .kind = Integer,
     .initial = "200",
     .least = 0,
     .most = kMany,
     .what = "How many collectives may lie between two that are joined."},
    {.owners = kOverlap,
     .key = "max_memory_increase_gb",
     .kind = Real,
     .initial = "1",
     .least = 0,
     .most = kMany,
     .what = "Gigabytes that the new order may need beyond the old one."},
    {.owners = kOverlap,
     .key = "max_memory_increase_ratio",
     .kind = Real,
     .initial = "0.05",
     .least = 0,
     .most = kMany,
     .what = "The same as a share of what the old order needs."},
    {.owners = kOverlap,
     .key = "enable_fusion_regions",
     .kind = Flag,
     .initial = "true",
     .what = "Calls that become one kernel are moved together."},
    {.owners = kOverlap,
     .key = "prioritize_bucketing_during_scheduling",
     .kind = Flag,
     .initial = "true",
     .what = "Collectives that are alike come one after the other."},
    {.owners = kOverlap,
     .key = "assume_bucketing_reduces_latency",
     .kind = Flag,
     .initial = "true",
     .what = "Collectives that will be joined are taken to start at once."},
    {.owners = kOverlap,
     .key = "collective_bucketing",
     .kind = Flag,
     .initial = "false",
     .what = "Joins collectives that are alike where all that is hidden stays so."},
    {.owners = kOverlap,
     .key = "bucket_exposed_first",
     .kind = Flag,
     .initial = "true",
     .what = "Joins collectives that nothing hides before the others."},
    {.owners = kOverlap,
     .key = "intra_node_bw",
     .kind = Real,
     .initial = "300",
     .least = 0.001,
     .most = kMany,
     .what = "Gigabytes a second between the GPUs of a machine."},
    {.owners = kOverlap,
     .key = "inter_node_bw",
     .kind = Real,
     .initial = "25",
     .least = 0.001,
     .most = kMany,
     .what = "Gigabytes a second between machines."},
    {.owners = kOverlap,
     .key = "gpu",
     .kind = Choice,
     .initial = "asked of the device",
     .choices = "v100 a100 h100 b200",
     .what = "The GPU whose data sheet the estimates take."},
    {.owners = kOverlap,
     .key = "group_size",
     .kind = Integer,
     .initial = "8",
     .least = 1,
     .most = kMany,
     .what = "Members of groups whose size no call tells."},
};

bool holdsWord(std::string_view words, std::string_view word) {
    while (!words.empty()) {
        const size_t end = std::min(words.find(' '), words.size());
        if (words.substr(0, end) == word) return true;
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return false;
}

std::string numberText(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string rangeText(const PassSetting& setting) {
    if (setting.most >= kMany) return " from " + numberText(setting.least) + " on";
    return " from " + numberText(setting.least) + " to " + numberText(setting.most);
}

/// What the setting takes, where the value is none of that; empty if it fits.
std::string unlessFits(const PassSetting& setting, std::string_view value) {
    if (setting.kind == File) return value.empty() ? "the name of a file" : "";
    if (setting.kind == Choice)
        return holdsWord(setting.choices, value) ? "" : "one of " + std::string(setting.choices);
    if (setting.kind == Flag) return holdsWord("0 1 false true False True", value) ? "" : "true or false";
    double number = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = setting.kind == Real || number == std::floor(number);
    const bool fits = status == std::errc() && end == value.data() + value.size() && whole && number >= setting.least &&
                      number <= setting.most;
    return fits ? "" : (setting.kind == Integer ? "a whole number" : "a number") + rangeText(setting);
}

}  // namespace

bool PassSetting::belongsTo(std::string_view owner) const { return owners.empty() || holdsWord(owners, owner); }

std::span<const PassSetting> passSettings() { return kSettings; }

Result<void> checkSettings(const OptionalPass& wanted) {
    std::vector<std::string_view> keys, given;
    for (const PassSetting& setting : kSettings)
        if (setting.belongsTo(wanted.name)) keys.push_back(setting.key);
    for (const auto& [key, value] : wanted.settings) {
        const auto* found = std::find_if(
            std::begin(kSettings), std::end(kSettings),
            [&, &name = key](const PassSetting& one) { return one.key == name && one.belongsTo(wanted.name); });
        if (found == std::end(kSettings)) {
            Error error{
                ErrorCode::InvalidInput, "'" + wanted.name + "' has no setting '" + visibleText(key) + "'", {}, {}};
            if (std::string near = suggestion(key, keys); !near.empty()) error.notes.push_back(std::move(near));
            std::string all;
            for (const std::string_view name : keys) all += (all.empty() ? "it has: " : ", ") + std::string(name);
            error.notes.push_back(std::move(all));
            return error;
        }
        if (std::string wants = unlessFits(*found, value); !wants.empty())
            return invalidInput("the setting '" + key + "' of '" + wanted.name + "' is " + wants + ", not '" +
                                visibleText(value) + "'");
        if (std::find(given.begin(), given.end(), key) != given.end())
            return invalidInput("the setting '" + key + "' of '" + wanted.name + "' is given twice");
        given.push_back(key);
    }
    return {};
}

}  // namespace cutaway
