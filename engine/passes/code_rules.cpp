// The rules of passes that are written as functions. A pass without rows here has one rule, which has its name.
#include <algorithm>

#include "engine/ops/op_registry.h"
#include "engine/passes/batch_rules.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/rule_tables.h"

namespace cutaway {
namespace {

constexpr CodeRule kUndivided[] = {
    {"torch_calls_to_aten", "torch_calls_to_aten", "Calls of Python functions and methods are ATen operators", "",
     true},
    {"move_to_device", "move_to_device", "All values are on the device that is compiled for", "", true},
    {"functionalize", "functionalize", "What is written in place becomes a new value", "call", true},
    {"differentiate", "differentiate", "The graph computes the gradients of its outputs", "output", true}};

constexpr std::string_view kScatters =
    "aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, aten.as_strided_scatter.default";
constexpr CodeRule kRules[] = {
    {"inline_wrappers", "inline_wrappers", "What only wraps a graph is that graph's calls", "call"},
    {"inline_subgraphs", "inline_subgraphs", "Lowering knows the calls of a graph, not the call of it",
     "higher_order.invoke_subgraph, higher_order.invoke_subgraph.default"},
    {"apply_gumbel_max_trick_pass", "apply_gumbel_max_trick", "argmax(softmax(x) / e) is argmax(x - log(e))",
     "torch.argmax"},
    {"efficient_conv_bn_eval_pass", "efficient_conv_bn_eval",
     "A batch norm scales the weight of the convolution before it",
     "torch.nn.functional.batch_norm, aten.batch_norm.default"},
    {"constant_fold_uniform_value", "uniform_value", "A tensor that holds one value everywhere is made by full"},
    {"constant_fold_uniform_value", "zero_product", "A product with the number 0 is a tensor of zeros",
     "aten.mul.Tensor, aten.mul.Scalar"},
    {"constant_fold_uniform_value", "neutral_operand", "Adding zeros and multiplying by ones changes nothing",
     "aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor"},
    {"constant_fold_uniform_value", "repeated_view", "A tensor is reinterpreted as a dtype once", "aten.view.dtype"},
    {"constant_fold_uniform_value", "unread_view", "Views that nobody reads are dropped", "call"},
    {"constant_fold_uniform_value", "unread_source", "With parity: inputs that only dropped views read are dropped",
     "placeholder, get_attr"},
    {"canonicalize_aten_ir_passes", "canonicalize_quant",
     "Calls of quantized bodies keep their options beside their operands", "higher_order.invoke_quant_packed*"},
    {"replace_random_passes", "fuse_seed_creation", "One call makes all seeds of a device",
     "prims.inductor_seeds.default"},
    {"remove_profiler_ops", "_record_function_enter", "The profiler watches the original program",
     "profiler._record_function_enter.default"},
    {"remove_profiler_ops", "_record_function_enter_new", "The profiler watches the original program",
     "profiler._record_function_enter_new.default"},
    {"remove_profiler_ops", "_record_function_exit", "The profiler watches the original program",
     "profiler._record_function_exit.default, profiler._record_function_exit._RecordFunction"},
    {"remove_assert_ops", "_assert_tensor_metadata", "Types have been fixed since capture",
     "aten._assert_tensor_metadata.default"},
    {"split_cat_aten_pass", "merge_split_cat_aten", "Neighbouring pieces of a split are one slice", "aten.cat.default"},
    {"select_cat_aten_pass", "merge_select_cat_aten",
     "All items, one behind the other, are the tensor in another shape", "aten.cat.default"},
    {"unbind_stack_aten_pass", "merge_unbind_stack_aten", "All items, stacked where they came from, are the tensor",
     "aten.cat.default"},
    {"move_view_after_cat_aten_pass", "move_view_after_cat_aten",
     "One reshape of the whole does what one for each piece does", "aten.cat.default"},
    {"stable_sort", "stable_topological_sort", "Every node stands behind its operands"},
    {"b2b_gemm_pass", "b2b_gemm", "The first of two products is computed block by block in the kernel of the second",
     "aten.mm.default"},
    {"move_constructors_to_cuda", "move_scalars_to_cuda",
     "With CUDA graphs, numbers that the caller passes go to the GPU in one copy per dtype", "placeholder"},
    {"move_constructors_to_cuda", "move_constructors_to_cuda", "A tensor that only the GPU uses is made there", "call"},
    {"overlap_scheduling", "wait_for_copies",
     "A copy to another device is there before its readers, wherever they come to stand", "prims.device_put.default"},
    {"overlap_scheduling", "reorder_collective", "A collective starts before work that it can run beside",
     "_c10d_functional.*"},
    {"overlap_scheduling", "reorder_wait", "A result is waited for when other work has been done",
     "_c10d_functional.wait_tensor.default"},
    {"overlap_scheduling", "reorder_call", "What a collective needs comes before it, what needs its result after it",
     "call, get_attr"},
    {"overlap_scheduling", "join_collectives", "Collectives that are hidden alike are one (collective_bucketing)",
     "_c10d_functional.*"},
    {"reinplace_inplaceable_ops", "merge_scatters",
     "A write of what another write has made of the same place is one write", kScatters},
    {"reinplace_inplaceable_ops", "reinplace", "A value that nobody reads any more is written to",
     "aten.index_put.default, aten._unsafe_index_put.default, aten.slice_scatter.default, aten.select_scatter.default, aten.diagonal_scatter.default, "
     "aten.as_strided_scatter.default, aten._foreach_*, _c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"},
    {"micro_pipeline_tp_pass", "fuse_all_gather_matmul", "What is collected is multiplied piece by piece",
     "_c10d_functional.all_gather_into_tensor.default"},
    {"micro_pipeline_tp_pass", "fuse_matmul_reduce_scatter", "A product is shared out piece by piece",
     "_c10d_functional.reduce_scatter_tensor.default"},
    {"reinplace_fsdp_all_gather", "unread_item", "A buffer that nobody reads is not taken out of its tuple",
     "operator.getitem"},
    {"decompose_scan_to_while_loop", "scan_to_while_loop", "A scan is a loop",
     "higher_order.scan, higher_order.scan.default"},
    {"decompose_map_to_while_loop", "map_to_while_loop", "A map is a loop",
     "higher_order.map_impl, higher_order.map_impl.default"},
    {"decompose_triton_kernel_wrapper_functional", "decompose_triton_kernel_wrapper",
     "Lowering knows the kernel, not its wrapper",
     "higher_order.triton_kernel_wrapper_functional, higher_order.triton_kernel_wrapper_functional.default"},
    {"decompose_auto_functionalized", "decompose_auto_functionalized", "Lowering knows the operator, not its wrapper",
     "higher_order.auto_functionalized, higher_order.auto_functionalized.default, higher_order.auto_functionalized_v2, higher_order.auto_functionalized_v2.default"},
};

/// What the rules start at that have the names of their passes.
struct Start {
    std::string_view pass, starts;
};
constexpr Start kStarts[] = {
    {"sink_cat_after_pointwise", "torch.relu, torch.tanh, Tensor.relu, Tensor.tanh"},
    {"numpy_compat_normalization", "call"},
    {"linear_permute_fusion", "Tensor.permute"},
    {"permute_linear_fusion", "torch._C._nn.linear, torch.nn.functional.linear"},
    {"permute_matmul_fusion", "torch.bmm, torch.matmul"},
    {"normalization_pass",
     "torch.split, torch.functional.split, Tensor.split, torch.unbind, Tensor.unbind, torch.cat, torch.concat, torch.stack, "
     "Tensor.squeeze, Tensor.reshape, Tensor.clamp, torch.clamp, Tensor.detach"},
    {"remove_split_with_size_one_pass", "torch.split, torch.functional.split, Tensor.split"},
    {"merge_splits_pass", "torch.split, torch.functional.split"},
    {"split_cat_pass", "torch.split, torch.functional.split"},
    {"unbind_stack_pass", "torch.unbind"},
    {"split_cat_to_slices_pass", "torch.cat"},
    {"unbind_cat_to_view_pass", "torch.cat"},
    {"split_stack_to_cats_pass", "torch.stack"},
    {"unbind_stack_to_slices_pass", "torch.stack"},
    {"move_reshape_out_of_split_stack_pass", "torch.stack"},
    {"merge_getitem_cat_pass", "torch.cat"},
    {"mutate_cat_pass", "torch.cat"},
    {"einsum_to_pointwise_pass", "torch.functional.einsum, torch.einsum"},
    {"view_to_reshape", "aten.view.default"},
    {"reorder_for_locality", "call"},
    {"fake_tensor_update", "call"},
    {"bucket_reduce_scatters", "_c10d_functional.reduce_scatter_tensor.default"},
    {"bucket_all_reduce", "_c10d_functional.all_reduce.default"},
    {"bucket_all_gathers", "_c10d_functional.all_gather_into_tensor.default"},
    {"grouped_gemm_pass", "mkldnn._linear_pointwise.default"},
    {"concat_linear_woq_int4", "aten._weight_int4pack_mm_for_cpu.default"},
    {"remove_fsdp2_unsharded_param_graph_input_usage", "fsdp.copy_.default"},
    {"fuse_ddp_with_concat_op", "_c10d_functional.all_reduce.default"},
    {"fuse_ddp_with_coalesced_op", "_c10d_functional.all_reduce.default"},
    {"schedule_comm_wait", "_c10d_functional.all_reduce.default, _c10d_functional.all_reduce_coalesced.default"},
    {"quant_lift_up",
     "quantized_decomposed.quantize_per_tensor.default, quantized_decomposed.quantize_per_tensor.tensor"},
};
std::string_view startsOfPass(std::string_view pass) {
    for (const Start& row : kStarts)
        if (row.pass == pass) return row.starts;
    for (const batching::BatchRule& rule : batching::batchRules())
        if (rule.name == pass) return rule.function;
    return {};
}

/// Those that are named by the operator they rewrite.
void addOperators(std::vector<CodeRule>& out, std::string_view pass) {
    if (pass == "remove_noop_ops" || pass == "post_grad_remove_noop_ops") {
        for (const std::string_view name : noopRules())
            out.push_back({pass, name, "A call that returns its operand unchanged is dropped", name});
    } else if (pass == "expand_composites" || pass == "decompose") {
        for (const Op* op : allOps())
            if (op->def()->decompose && (op->def()->expand == Expand::Composite ||
                                         (op->def()->expand == Expand::Decompose && pass == "decompose")))
                out.push_back({pass, op->name(), "The operator is written as smaller ones", op->name()});
    } else if (pass.ends_with("eliminate_dead_code") || pass == "dce") {
        out.push_back({pass, "dead node", "A pure call that nobody reads is dropped"});
    }
}

/// The node as CodeRule::starts names it; empty if it cannot be named there.
std::string nameOf(const Node& node) {
    if (node.isPlaceholder()) return "placeholder";
    if (node.isOutput()) return "output";
    if (node.kind() == NodeKind::GetAttr) return "get_attr";
    if (!node.isCall()) return {};
    return node.op().style() == Op::Style::Method ? "Tensor." + node.op().name() : node.op().name();
}

}  // namespace

std::vector<std::string> startsOf(const CodeRule& rule) {
    std::vector<std::string> names;
    for (std::string_view rest = rule.starts; !rest.empty();) {
        const size_t comma = rest.find(", ");
        names.emplace_back(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
    return names;
}

bool startsAt(const CodeRule& rule, const Node& node) {
    const std::vector<std::string> names = startsOf(rule);
    const std::string name = nameOf(node);
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& each) {
               if (each == "call") return node.isCall();
               return each.ends_with('*') ? name.starts_with(std::string_view(each).substr(0, each.size() - 1))
                                          : name == each;
           });
}

std::vector<Refusal>::const_iterator refusalOf(const std::vector<Refusal>& said, const CodeRule& rule) {
    const auto of = [&](std::string_view name) {
        return std::find_if(said.begin(), said.end(), [&](const Refusal& one) { return one.rule == name; });
    };
    const auto own = of(rule.name);
    return own == said.end() ? of(rule.pass) : own;
}

std::span<const CodeRule> undividedRules() { return kUndivided; }

const std::vector<CodeRule>& codeRules() {
    static const std::vector<CodeRule> all = [] {
        std::vector<CodeRule> rules;
        const auto tables = ruleTables();
        for (const Pass& pass : pipeline()) {
            const size_t before = rules.size();
            for (const CodeRule& rule : kRules)
                if (rule.pass == pass.name) rules.push_back(rule);
            addOperators(rules, pass.name);
            const bool undivided = std::any_of(std::begin(kUndivided), std::end(kUndivided),
                                               [&](const CodeRule& rule) { return rule.pass == pass.name; });
            const bool byTable = std::any_of(tables.begin(), tables.end(),
                                             [&](const RuleTable& table) { return table.pass == pass.name; });
            if (rules.size() == before && !undivided && !byTable)
                rules.push_back({pass.name, pass.name, pass.summary, startsOfPass(pass.name)});
        }
        return rules;
    }();
    return all;
}

}  // namespace cutaway
