"""Records what PyTorch's pre-grad passes make of small graphs.

    python record_pre_grad.py OUTPUT_FOLDER [NAME...]

One file per case: the passes with their settings, the graph as Dynamo writes it, and the graph after the passes ("# same" where
they leave it alone). tests/engine/pre_grad_test.cpp runs ours on the first and compares.
"""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch._inductor import config
from torch._inductor.fx_passes import group_batch_fusion, pre_grad, quantization, split_cat

pre_grad.lazy_init()
CASES = {}
r = torch.randn


def case(name, passes, inputs, function, idle=None, numbers=None, parity=False):
    """`passes`: names, with their settings after '=', as Cutaway's --enable takes them. `parity`: what
    PyTorch does is wrong, and ours only with that option."""
    CASES[name] = (passes.split(), inputs, function, idle, numbers, parity)


# sink_cat_after_pointwise
SINK = "sink_cat_after_pointwise"
case("sink_relu", SINK, [r(2, 3), r(2, 3)], lambda a, b: torch.relu(torch.cat([a, b], dim=1)))
case("sink_method_tanh", SINK, [r(2, 3), r(2, 3)], lambda a, b: torch.cat((a, b)).tanh())
case("sink_through_views", SINK, [r(2, 3), r(2, 3)], lambda a, b: torch.cat([a, b], 1).view(3, 4).view(-1).relu())
case("sink_two_readers", SINK, [r(2, 3), r(2, 3)], lambda a, b: (lambda c: c.relu() + c)(torch.cat([a, b], 1)))
case("sink_other_function", SINK, [r(2, 3), r(2, 3)], lambda a, b: torch.sigmoid(torch.cat([a, b], 1)))
case("sink_functional_relu", SINK, [r(2, 3), r(2, 3)], lambda a, b: F.relu(torch.cat([a, b], 1)))
case("sink_once", SINK, [r(2, 3), r(2, 3)], lambda a, b: torch.cat([a, b], 1).relu().tanh(), idle="one function sinks per run, as in PyTorch")

# numpy_compat_normalization
NUMPY = "numpy_compat_normalization"
case("numpy_axis", NUMPY, [r(2, 3)], lambda x: (torch.sum(x, axis=1), torch.mean(x, axis=0, keepdims=True), torch.sum(x, dim=1)))
case("numpy_inputs", NUMPY, [r(2, 3), r(2, 3)], lambda x, y: torch.exp(x=x) + torch.mul(x1=x, x2=y) + torch.tanh(a=y))
case("numpy_operands", NUMPY, [r(2, 3), r(2, 3)], lambda x, y: torch.sum(input=x, axis=1) + torch.add(x, other=y).sum(axis=1))

# apply_gumbel_max_trick
GUMBEL = "apply_gumbel_max_trick_pass"
DRAWS = "draws random numbers"
case("gumbel", GUMBEL, [r(2, 5)], lambda x: torch.argmax(F.softmax(x, dim=-1) / torch.empty_like(x).exponential_(1.0), dim=-1, keepdim=True), numbers=DRAWS)
case("gumbel_keep", GUMBEL, [r(2, 5)], lambda x: torch.argmax(F.softmax(x, dim=-1) / torch.empty_like(x).exponential_(1.0), dim=-1), numbers=DRAWS)
case("gumbel_rate", GUMBEL, [r(2, 5)], lambda x: torch.argmax(F.softmax(x, dim=-1) / torch.empty_like(x).exponential_(2.0), dim=-1, keepdim=True),
     numbers=DRAWS)
case("gumbel_torch_softmax", GUMBEL, [r(2, 5)],
     lambda x: torch.argmax(torch.softmax(x, dim=-1) / torch.empty_like(x).exponential_(1.0), dim=-1, keepdim=True), numbers=DRAWS)

# normalization_pass
NORMAL = "normalization_pass"
REWRITES = "normal forms are written again, as in PyTorch"
case("normal_split", NORMAL, [r(4, 6)], lambda x: [p + 1 for p in x.split(2, -1)] + [p * 2 for p in torch.split(x, [1, 3])] + [p - 1 for p in torch.split(x, 3)])
case("normal_split_uneven", NORMAL, [r(5, 6)], lambda x: [p + 1 for p in torch.split(x, 2)])
case("normal_unbind", NORMAL, [r(4, 6)], lambda x: [p + 1 for p in x.unbind(-1)] + [p + 2 for p in torch.unbind(x)])
case("normal_cat_stack", NORMAL, [r(4, 6), r(4, 6)], lambda x, y: (torch.cat([x, y], -1), torch.cat((x, y)), torch.concat([x, y], dim=1), torch.stack([x, y], -1),
                                                                torch.cat([x, y], axis=1)))
case("normal_methods", NORMAL, [r(4, 1, 6)], lambda x: (x.squeeze(), x.squeeze(1), x.reshape(-1, 6), x.reshape(2, 12), x.clamp(0, 1), x.clamp(min=0.5),
                                                        torch.clamp(x, -1, 1), x.detach() + 1, x.squeeze(dim=1)))

# the split-cat family
ONE = "remove_split_with_size_one_pass"
case("one_section", ONE, [r(4, 3)], lambda x: torch.split(x, [4], dim=0)[0].relu())
case("one_section_of_two", ONE, [r(4, 3)], lambda x: torch.split(x, [1, 3], dim=0)[0].relu())
MERGE = f"{NORMAL} merge_splits_pass"
case("merge_splits", MERGE, [r(6, 3)], lambda x: (lambda a, b: [a.relu()] + [p.tanh() for p in torch.split(b, [1, 3])])(*torch.split(x, [2, 4])))
case("merge_splits_partly", MERGE, [r(7, 3)], lambda x: (lambda a, b, c: [c.relu(), torch.split(b, [1, 3])[1].tanh()])(*torch.split(x, [2, 4, 1])))
case("merge_splits_other_dim", MERGE, [r(6, 4)], lambda x: (lambda a, b: [a.relu()] + [p.tanh() for p in torch.split(b, [1, 3], dim=1)])(*torch.split(x, [2, 4])))
case("merge_splits_unnormal", "merge_splits_pass", [r(6, 3)], lambda x: [p.tanh() for p in torch.split(torch.split(x, 3)[0], 1)])
CAT = f"{NORMAL} split_cat_pass"
case("split_cat_whole", CAT, [r(4, 3)], lambda x: torch.cat(torch.split(x, [2, 2]), dim=0).relu())
case("split_cat_ranges", CAT, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([a, b], 0).relu(), torch.cat([c, d], 0).tanh()))(*torch.split(x, 2)))
case("split_cat_others", CAT, [r(8, 3), r(1, 3)], lambda x, y: (lambda a, b, c, d: torch.cat([y, a, b, c, d, y], 0).relu())(*torch.split(x, 2)))
case("split_cat_reader", CAT, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([a, b, c], 0).relu(), d.tanh()))(*torch.split(x, 2)))
case("split_cat_shuffled", CAT, [r(8, 3)], lambda x: (lambda a, b, c, d: torch.cat([c, d, a, b], 0).relu())(*torch.split(x, 2)))
case("split_cat_overlap", CAT, [r(6, 3)], lambda x: (lambda a, b, c: (torch.cat([a, b], 0).relu(), torch.cat([b, c], 0).tanh()))(*torch.split(x, 2)))
case("split_cat_other_dim", CAT, [r(4, 6)], lambda x: torch.cat(torch.split(x, 2, dim=1), dim=0).relu())
case("split_stack", CAT, [r(4, 6)], lambda x: torch.stack(torch.split(x, 2, dim=1), dim=0).relu())
case("split_stack_others", CAT, [r(4, 6), r(4, 2)], lambda x, y: torch.stack([y, *torch.split(x, 2, dim=1), y, y], dim=0).relu())
case("split_stack_uneven", CAT, [r(4, 6)], lambda x: (lambda a, b: torch.stack([a[:, :2], b[:, :2]], 0).relu())(*torch.split(x, [2, 4], dim=1)))
case("split_squeeze", CAT, [r(4, 3)], lambda x: [p.squeeze(1).relu() for p in torch.split(x, 1, dim=1)])
case("split_stack_unread", CAT, [r(4, 7)], lambda x: (lambda a, b, c, d, e, f, g: (torch.stack([c], 0).relu(), d.relu()))(*torch.split(x, 1, dim=1)))
UNBIND = f"{NORMAL} unbind_stack_pass"
case("unbind_stack", UNBIND, [r(4, 3, 2)], lambda x: torch.stack(torch.unbind(x, dim=0), dim=1).relu())
case("unbind_stack_same", UNBIND, [r(4, 3, 2)], lambda x: torch.stack(torch.unbind(x, dim=1), dim=1).relu())
case("unbind_cat", UNBIND, [r(4, 3, 2)], lambda x: torch.cat(torch.unbind(x, dim=0), dim=1).relu())
case("unbind_stack_others", UNBIND, [r(4, 3, 2), r(3, 2)], lambda x, y: torch.stack([y, *torch.unbind(x, dim=0)], dim=1).relu())
case("unbind_cat_others", UNBIND, [r(4, 3, 2), r(3, 2)], lambda x, y: torch.cat([*torch.unbind(x, dim=0), y], dim=1).relu())
case("unbind_partly", UNBIND, [r(4, 3, 2)], lambda x: torch.stack(torch.unbind(x, dim=0)[:3], dim=1).relu())
GETITEM = f"{NORMAL} merge_getitem_cat_pass"
case("getitem_cat", GETITEM, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([b, c], 0).relu(), a.tanh(), d.sin()))(*torch.split(x, 2)))
case("getitem_cat_shared", GETITEM, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([b, c], 0).relu(), b.tanh(), d.sin()))(*torch.split(x, 2)))
case("getitem_cat_apart", GETITEM, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([a, c], 0).relu(), b.tanh(), d.sin()))(*torch.split(x, 2)))
MUTATE = f"{NORMAL} mutate_cat_pass"
case("mutate_cat_all", MUTATE, [r(4, 3)], lambda x: (lambda a, b: (torch.cat([a, b], 0).relu(), a.tanh()))(*torch.split(x, 2)))
case("mutate_cat_run", MUTATE, [r(8, 3)], lambda x: (lambda a, b, c, d: (torch.cat([b, c], 0).relu(), b.tanh(), d.sin()))(*torch.split(x, 2)))
case("mutate_cat_other_dim", MUTATE, [r(4, 4)], lambda x: (lambda a, b: (torch.cat([a, b], 1).relu(), a.tanh()))(*torch.split(x, 2)))
SLICES = f"{NORMAL} split_cat_to_slices_pass=threshold_to_cat:2"
case("cat_to_slices", SLICES, [r(4, 8), r(4, 1)], lambda x, y: (lambda a, b, c, d: (torch.cat([y, b, c, y], 1).relu(), a.tanh(), d.sin()))(*torch.split(x, 2, dim=1)))
case("cat_to_slices_all", SLICES, [r(4, 8)], lambda x: (lambda a, b, c, d: (torch.cat([a, b, c, d], 1).relu(), b.tanh()))(*torch.split(x, 2, dim=1)))
case("cat_to_slices_threshold", f"{NORMAL} split_cat_to_slices_pass", [r(4, 8), r(4, 1)],
     lambda x, y: (lambda a, b, c, d: (torch.cat([y, b, c, y], 1).relu(), a.tanh(), d.sin()))(*torch.split(x, 2, dim=1)))
case("cat_to_slices_single", SLICES, [r(4, 8)], lambda x: (lambda a, b, c, d: (torch.cat([b], 0).relu(), a.tanh()))(*torch.split(x, 2, dim=1)))
case("cat_to_slices_twice", SLICES, [r(4, 8)], lambda x: (lambda a, b: (torch.cat([a, a, b], 1).relu(), a.tanh()))(*torch.split(x, 4, dim=1)))
# where the last operand is of another cut PyTorch's rewrite loses it; cat_to_slices.txt beside the recordings has that case
TOVIEW = f"{NORMAL} unbind_cat_to_view_pass=threshold_to_cat:2"
case("unbind_cat_to_view", TOVIEW, [r(4, 3, 2)], lambda x: (lambda a, b, c, d: (torch.cat([a, b, c, d], 1).relu(), d.tanh()))(*torch.unbind(x, 0)))
case("unbind_cat_to_view_part", TOVIEW, [r(4, 3, 2), r(3, 2)], lambda x, y: (lambda a, b, c, d: (torch.cat([y, b, c, y], 1).relu(), d.tanh()))(*torch.unbind(x, 0)))
case("unbind_cat_to_view_unordered", TOVIEW, [r(6, 6)], lambda x: (lambda a, b, c, d, e, f: (torch.cat([d.sin(), d, e, f, b], 0).relu(), b))(*torch.unbind(x, 1)))
case("unbind_cat_to_view_backwards", TOVIEW, [r(2, 3)], lambda x: (lambda a, b: torch.cat([b, a], 0).relu())(*torch.unbind(x, 0)),
     numbers="all items count as the whole, in any order", parity=True)
SWAP = "one swap of two dims is not the move that it stands for"
case("unbind_cat_to_view_far", TOVIEW, [r(2, 3, 4, 5)], lambda x: (lambda a, b: torch.cat([a, b], 2).relu())(*torch.unbind(x, 0)), numbers=SWAP, parity=True)
TOCATS = f"{NORMAL} split_stack_to_cats_pass=threshold_to_cat:2"
case("split_stack_to_cats", TOCATS, [r(4, 8)], lambda x: (lambda a, b, c, d: (torch.stack([a, b, c, d], 1).relu(), b.tanh()))(*torch.split(x, 2, dim=1)))
case("split_stack_to_cats_far", TOCATS, [r(4, 3, 5)], lambda x: (lambda a, b: torch.stack([a, b], 2).relu())(*torch.split(x, 2, dim=0)), numbers=SWAP, parity=True)
case("split_stack_to_cats_dim", TOCATS, [r(4, 8)], lambda x: (lambda a, b, c, d: (torch.stack([a, b, c, d], 0).relu(), b.tanh()))(*torch.split(x, 2, dim=1)))
TOSLICES = f"{NORMAL} unbind_stack_to_slices_pass=threshold_to_cat:2"
case("unbind_stack_to_slices", TOSLICES, [r(4, 3, 2)], lambda x: (lambda a, b, c, d: (torch.stack([a, b, c, d], 0).relu(), b.tanh()))(*torch.unbind(x, 0)))
STACKED = "items that are stacked along another dim are not a slice"
case("unbind_stack_to_slices_far", TOSLICES, [r(4, 3, 2)], lambda x: (lambda a, b, c, d: (torch.stack([a, b, c, d], 1).relu(), b.tanh()))(*torch.unbind(x, 0)), numbers=STACKED, parity=True)
case("unbind_stack_to_slices_far_part", TOSLICES, [r(3, 4, 5), r(3, 5)], lambda x, y: (lambda a, b, c, d: (torch.stack([y, b, c, y], 0).relu(), a.tanh(), d.sin()))(*torch.unbind(x, 1)), numbers=STACKED, parity=True)
RESHAPE = f"{NORMAL} move_reshape_out_of_split_stack_pass=threshold_to_cat:2"
# along dim 1 PyTorch's rewrite mixes up elements; reshape_out_of_stack.txt beside the recordings has that case
case("reshape_out_of_stack_rows", RESHAPE, [r(8, 4)], lambda x: torch.stack([p.reshape(2, 2, 2) for p in torch.split(x, 2, dim=0)], 0).relu())
MIXED = "the reshape takes its elements from other parts"
case("reshape_out_of_stack_far", RESHAPE, [r(4, 4)], lambda x: torch.stack([p.reshape(2, 4) for p in torch.split(x, 2, dim=0)], 1).relu(), numbers=MIXED, parity=True)
case("reshape_out_of_stack_columns", RESHAPE, [r(4, 8)], lambda x: torch.stack([p.reshape(2, 4) for p in torch.split(x, 2, dim=1)], 1).relu(), numbers=MIXED, parity=True)
case("reshape_out_of_stack_others", RESHAPE, [r(8, 4), r(2, 2, 2)],
     lambda x, y: torch.stack([y, *[p.reshape(2, 2, 2) for p in torch.split(x, 2, dim=0)], y, y.sin()], 0).relu())
case("reshape_out_of_stack_single", RESHAPE, [r(8, 4)], lambda x: (lambda a, b: (torch.stack([a.reshape(2, 8)], 0).relu(), b.tanh()))(*torch.split(x, 4, dim=0)))
EINSUM = "einsum_to_pointwise_pass"
case("einsum", EINSUM, [r(2, 3, 4), r(2, 3, 4, 5), r(2, 3, 5)], lambda x, w, b: torch.functional.einsum("abc,abcd->abd", x, w) + b,
     numbers="aten.einsum has no row")
case("einsum_unread", EINSUM, [r(2, 3, 4), r(2, 3, 4, 5)], lambda x, w: torch.functional.einsum("abc,abcd->abd", x, w).relu(), numbers="aten.einsum has no row")

# permute fusions
PERMUTE = "permute_fusion"
case("linear_permute", PERMUTE, [r(2, 3, 4), r(5, 4), r(5)], lambda x, w, b: F.linear(x, w, b).permute(0, 2, 1))
case("permute_linear", PERMUTE, [r(2, 3, 4), r(5, 3), r(5)], lambda x, w, b: F.linear(x.permute(0, 2, 1), w, b))
case("permute_linear_list", PERMUTE, [r(2, 3, 4), r(5, 3)], lambda x, w: F.linear(x.permute([0, 2, 1]), w))
case("permute_matmul", PERMUTE, [r(2, 3, 4), r(2, 3, 5)], lambda x, y: (torch.bmm(x.permute(0, 2, 1), y), torch.matmul(x.permute(0, 2, 1), y.permute(0, -2, 2))))
case("permute_other_dims", PERMUTE, [r(2, 3, 4), r(5, 3)], lambda x, w: F.linear(x.permute(2, 0, 1), torch.ones(5, 3)))

# group and batch fusion
SMALL = "=min_fuse_set_size:2"
case("batch_tanh", "batch_tanh", [r(2, 3) for _ in range(5)], lambda *x: sum(torch.tanh(each + 1) for each in x))
case("batch_tanh_few", "batch_tanh", [r(2, 3) for _ in range(4)], lambda *x: sum(torch.tanh(each + 1) for each in x))
case("batch_tanh_shapes", "batch_tanh" + SMALL, [r(2, 3), r(2, 3), r(4, 3)], lambda a, b, c: (a.sin().tanh(), torch.tanh(a), torch.tanh(b), torch.tanh(c)))
case("batch_tanh_dependent", "batch_tanh" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: torch.tanh(torch.tanh(a) + b) + torch.tanh(b))
case("batch_relu", "batch_relu" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: (F.relu(a) + F.relu(b), F.relu(a + 1, inplace=True)))
case("batch_sigmoid", "batch_sigmoid" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: torch.sigmoid(a) + torch.sigmoid(b))
case("batch_linear", "batch_linear" + SMALL, [r(2, 3), r(4, 3), r(4), r(2, 3), r(4, 3), r(4)], lambda x, w, b, y, v, c: F.linear(x, w, b) + F.linear(y, v, c))
case("batch_linear_plain", "batch_linear" + SMALL, [r(2, 3), r(4, 3), r(2, 3), r(4, 3)], lambda x, w, y, v: F.linear(x, w) + F.linear(y, v))
case("batch_linear_lhs", "batch_linear_lhs" + SMALL, [r(2, 3), r(4, 3), r(4), r(5, 3), r(5)], lambda x, w, b, v, c: (F.linear(x, w, b), F.linear(x, v, c)))
case("batch_linear_lhs_plain", "batch_linear_lhs" + SMALL, [r(2, 3), r(4, 3), r(5, 3)], lambda x, w, v: (F.linear(x, w), F.linear(x, v)))
case("batch_layernorm", "batch_layernorm" + SMALL, [r(2, 3), r(3), r(3), r(2, 3), r(3), r(3)],
     lambda x, w, b, y, v, c: F.layer_norm(x, (3,), w, b) + F.layer_norm(y, (3,), v, c))
case("batch_layernorm_plain", "batch_layernorm" + SMALL, [r(2, 3), r(2, 3)], lambda x, y: F.layer_norm(x, (3,)) + F.layer_norm(y, (3,)))
case("batch_clamp", "batch_clamp" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: torch.clamp(a, min=0, max=1) + torch.clamp(b, min=0, max=1))
case("batch_nan_to_num", "batch_nan_to_num" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: torch.nan_to_num(a, nan=1.0) + torch.nan_to_num(b, nan=1.0))
case("batch_detach", "batch_detach" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: torch.detach(a) + torch.detach(b))
case("batch_dropout", "batch_dropout" + SMALL, [r(2, 3), r(2, 3)], lambda a, b: F.dropout(a, 0.3, training=False) + F.dropout(b, 0.3, training=False),
     parity=True)


def settings(text):
    name, _, rest = text.partition("=")
    values = dict(each.split(":") for each in rest.split(",")) if rest else {}
    return name, {key: int(value) for key, value in values.items()}


def apply(gm, passes):
    options = dict(settings(each) for each in passes)
    with config.patch(pre_grad_fusion_options=options, permute_fusion=True):
        for name in options:
            if name == SINK:
                pre_grad.sink_cat_after_pointwise(gm)
            elif name == NUMPY:
                pre_grad.numpy_compat_normalization(gm.graph)
            elif name == GUMBEL:
                pre_grad.apply_gumbel_max_trick_pass.apply(gm.graph)
            elif name == PERMUTE:
                for node in gm.graph.nodes:
                    if isinstance(node.meta.get("example_value"), torch.Tensor):
                        node.meta["tensor_meta"] = node.meta["example_value"]
                for fusion in (pre_grad.linear_permute_fusion, pre_grad.permute_linear_fusion, pre_grad.permute_matmul_fusion):
                    fusion(gm)
            elif name in split_cat.PRE_GRAD_PATTERNS:
                split_cat.PRE_GRAD_PATTERNS[name].apply(gm.graph)
            else:
                group_batch_fusion.group_batch_fusion_passes(gm.graph, pre_grad=True)
    torch._inductor.pattern_matcher.stable_topological_sort(gm.graph)
    gm.graph.lint()
    gm.recompile()


def clean(text):
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#")) + "\n"


def record(name, folder):
    passes, inputs, function, idle, numbers, parity = CASES[name]
    texts = []

    def backend(gm, example):
        texts.append(clean(gm.print_readable(print_output=False)))
        apply(gm, passes)
        texts.append(clean(gm.print_readable(print_output=False)))
        return gm.forward
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend, fullgraph=True)(*inputs)
    assert len(texts) == 2, name
    text = f"# recorded: {name}\n" + ("# options: parity\n" if parity else "") + f"# pass: {' '.join(passes)}\n"
    text += f"# idle: not checked, {idle}\n" if idle else ""
    text += f"# numbers: not compared, {numbers}\n" if numbers else ""
    text += f"# before\n{texts[0]}"
    text += "# same\n" if texts[0] == texts[1] else f"# after\n{texts[1]}"
    Path(folder, name + ".txt").write_text(text)


if __name__ == "__main__":
    torch.manual_seed(0)
    for each in sys.argv[2:] or list(CASES):
        try:
            record(each, sys.argv[1])
        except Exception as error:
            print(f"{each}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", file=sys.stderr)
