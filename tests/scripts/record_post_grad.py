#!/usr/bin/env python3
"""Records what PyTorch's optional post-grad passes make of small graphs.

    python3 tests/scripts/record_post_grad.py tests/cases/post_grad_recorded [NAME...]

Needs PyTorch 2.11 on the CPU; groups are fake ones. One file per case: the pass with its settings, the graph, and the graph after the
pass ("# same" where it leaves it alone, "# stops" with PyTorch's words where it raises). tests/engine/post_grad_test.cpp runs ours on
the first and compares. PyTorch writes some calls in ways that stand in no graph that is lowered (an overload not chosen, flatten, a
tuple where a list of tensors is due); they are recorded as the calls that they come to.
"""
import copy
import operator
import sys
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # noqa: F401  registers its operators
import torch.distributed.fsdp._fully_shard._fsdp_param  # noqa: F401
from torch._inductor import comms
from torch._inductor.decomposition import select_decomp_table
from torch._inductor import config
from torch._inductor.fx_passes import ddp_fusion, group_batch_fusion, micro_pipeline_tp, mkldnn_fusion, quantization
from torch._inductor.pattern_matcher import stable_topological_sort
from torch.distributed._symmetric_memory import _test_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

import record_joint
from record_joint import short_form


def op_name(target):
    """As FX prints it: functions by their module and name."""
    if target is operator.getitem or isinstance(target, torch._ops.OpOverload):
        return "operator.getitem" if target is operator.getitem else str(target)
    return f"{target.__module__}.{target.__name__}".replace(".", "_")


record_joint.op_name = op_name
record_joint.SHORT[torch.float8_e4m3fn] = "f8e4m3fn"

# group_linear calls a library that no public build has.
torch.library.define("fbgemm::gmm", "(Tensor[] inputs, Tensor[] weights, Tensor[]? biases, *, bool smart_fused=False) -> Tensor[]")
torch.library.register_fake("fbgemm::gmm")(lambda inputs, weights, biases, smart_fused=False: [a @ b for a, b in zip(inputs, weights)])

aten, c10d = torch.ops.aten, torch.ops._c10d_functional
CASES = {}


def case(name, passes, inputs, function, **notes):
    """`inputs`: (sizes, dtype) each. `notes`: lines of the file's head."""
    CASES[name] = (passes, inputs, function, notes)


def f(*sizes, dtype=torch.float32):
    return sizes, dtype


# ---------------------------------------------------------------- gradients of DistributedDataParallel

def summed(gradient, members=2, group="0", op="sum"):
    return c10d.wait_tensor(c10d.all_reduce(gradient / members, op, group))


for way in ("concat", "coalesced"):
    NAME = f"fuse_ddp_with_{way}_op"
    case(f"ddp_{way}", NAME, [f(4, 3), f(5), f(2, 2)], lambda x, y, z: (summed(x.exp()), summed(y.exp()), summed(z.exp())))
    case(f"ddp_{way}_copied", NAME, [f(4, 3), f(5), f(4, 3), f(5)],
         lambda x, y, u, v: (lambda a, b, c: (u.copy_(a), v.copy_(b), c)[2:])(summed(x.exp()), summed(y.exp()), x + 1))
    case(f"ddp_{way}_read", NAME, [f(4, 3), f(5)], lambda x, y: (summed(x).exp(), summed(y)))
    case(f"ddp_{way}_undivided", NAME, [f(4), f(5), f(6)],
         lambda x, y, z: (c10d.wait_tensor(c10d.all_reduce(x.exp(), "sum", "0")), summed(y), summed(z)))
    # The first bucket closes with a megabyte, the others with the setting's.
    case(f"ddp_{way}_buckets", f"{NAME}=bucket_size_mb:2", [f(200000)] * 7, lambda *xs: tuple(summed(x) for x in xs))
    case(f"ddp_{way}_small_after_large", f"{NAME}=bucket_size_mb:2", [f(300000), f(5), f(600000), f(7)], lambda *xs: tuple(summed(x) for x in xs))
    case(f"ddp_{way}_divided_twice_read", NAME, [f(4), f(5)],
         lambda x, y: (lambda half: (c10d.wait_tensor(c10d.all_reduce(half, "sum", "0")), summed(y), half.exp()))(x / 2))
    case(f"ddp_{way}_divisors", NAME, [f(4), f(5)], lambda x, y: (summed(x, 2), summed(y, 4)))

# Where several nodes move, PyTorch writes them backwards and leaves the order to a later pass: cases with one wait each.
WAIT = "schedule_comm_wait"
case("wait_late", WAIT, [f(4), f(4)], lambda x, y: (lambda s: (y.exp(), s.sin()))(summed(x)), ordered="")
case("wait_late_two", WAIT, [f(4), f(5), f(4)],
     lambda x, y, z: (lambda s, t, u: (u, s.sin(), t.cos()))(summed(x), summed(y), z.exp()), ordered="")
case("wait_late_same_reader", WAIT, [f(4), f(4), f(4)], lambda x, y, z: (lambda s, t, u: (u, s + t))(summed(x), summed(y), z.exp()), ordered="")
case("wait_in_place", WAIT, [f(4), f(4)], lambda x, y: (lambda u: (summed(x).sin(), u))(y.exp()), ordered="")
case("fused_then_late", "fuse_ddp_with_concat_op schedule_comm_wait", [f(4, 3), f(5), f(4)], lambda x, y, z: (summed(x), summed(y), z.exp()))


# ---------------------------------------------------------------- parameters in shares (FSDP2)

FSDP, INTO = "remove_fsdp2_unsharded_param_graph_input_usage", "reinplace_fsdp_all_gather"
resize, fill = torch.ops.inductor.resize_storage_bytes_, torch.ops.fsdp.copy_


def use(buffer, share, size, *readers, empty=True):
    """Shares are collected, the buffer is filled with them, read, and emptied."""
    whole = c10d.wait_tensor(c10d.all_gather_into_tensor(share, 2, "0"))
    resize(buffer, size)
    fill(buffer, whole)
    results = [reader(buffer) for reader in readers]
    if empty:
        resize(buffer, 0)
    return results


def layers(w, a, b, x):
    return use(w, a, 48, lambda w: x @ w) + use(w, b, 48, lambda w: x @ w, torch.exp)


def viewed_before(w, a, x):
    view = w.t()
    return use(w, a, 48, lambda w: x @ w) + [view.exp()]


def written_by_the_model(w, a, x):
    return use(w, a, 48, lambda w: (lambda _: x @ w)(w.mul_(2)))


def never_emptied(w, a, x):
    fill(w, c10d.wait_tensor(c10d.all_gather_into_tensor(a, 2, "0")))
    return x @ w


WEIGHT, SHARE, X = f(4, 3), f(2, 3), f(5, 4)
case("fsdp_parameter", FSDP, [WEIGHT, SHARE, X], lambda w, a, x: use(w, a, 48, lambda w: x @ w))
case("fsdp_two_layers", FSDP, [WEIGHT, SHARE, SHARE, X], layers)
case("fsdp_views", FSDP, [WEIGHT, SHARE, f(5, 3)], lambda w, a, x: use(w, a, 48, lambda w: x @ w.t()))
case("fsdp_not_emptied", FSDP, [WEIGHT, SHARE, X], lambda w, a, x: use(w, a, 48, lambda w: x @ w, empty=False))
case("fsdp_never_emptied", FSDP, [WEIGHT, SHARE, X], never_emptied, options="parity")
case("fsdp_written", FSDP, [WEIGHT, SHARE, X], written_by_the_model)


def gathered(*shares, rank=1, reads_share=False):
    sizes = [share.numel() for share in shares]
    buffer = torch.empty(2 * sum(sizes))
    own, _ = torch.ops.fsdp.all_gather_copy_in(list(shares), buffer, sizes, sum(sizes), rank)
    results = [c10d.wait_tensor(c10d.all_gather_into_tensor(own, 2, "0"))]
    return results + ([own.exp()] if reads_share else [])


case("fsdp_gather", INTO, [SHARE, f(5)], lambda a, b: gathered(a, b))
case("fsdp_gather_share_read", INTO, [SHARE, f(5)], lambda a, b: gathered(a, b, reads_share=True))
case("fsdp_gather_two", INTO, [SHARE, f(5)], lambda a, b: gathered(a) + gathered(b, rank=0))


# ---------------------------------------------------------------- products

linear = torch.ops.mkldnn._linear_pointwise
ONEDNN, GROUP = "grouped_gemm_pass", "group_linear=min_fuse_set_size:2"


def plain(x, w, b=None):
    return linear(x, w, b, "none", [], "")


W = f(4, 6)
case("grouped_gemm", ONEDNN, [f(3, 6), W, W, f(4)], lambda x, v, w, b: (plain(x, v, b).sin(), plain(x, w)))
case("grouped_gemm_batched", ONEDNN, [f(2, 3, 6), W, W, W], lambda x, u, v, w: (plain(x, u), plain(x, v), plain(x, w)))
case("grouped_gemm_other_reader", ONEDNN, [f(3, 6), W, W], lambda x, v, w: (plain(x, v), plain(x, w), x.sin()))
case("grouped_gemm_other_size", ONEDNN, [f(3, 6), W, f(5, 6)], lambda x, v, w: (plain(x, v), plain(x, w)))
case("grouped_gemm_same_weight", ONEDNN, [f(3, 6), W, f(4)], lambda x, w, b: (plain(x, w), plain(x, w, b)))
case("grouped_gemm_late_weight", ONEDNN, [f(3, 6), W, W], lambda x, v, w: (plain(x, v), plain(x, w.exp())))
case("grouped_gemm_function", ONEDNN, [f(3, 6), W, W], lambda x, v, w: (linear(x, v, None, "relu", [], ""), plain(x, w)), options="parity",
     numbers="not compared, because the function is lost")
INT4 = "concat_linear_woq_int4"
int4 = torch.ops.aten._weight_int4pack_mm_for_cpu
X, NUMBERS, PAIRS = f(3, 64), f(64, 32, dtype=torch.uint8), f(2, 64, 2)
FEW, FEW_PAIRS = f(16, 32, dtype=torch.uint8), f(2, 16, 2)
# All but the first input are tensors of the module.
case("int4_linear", INT4, [X, NUMBERS, PAIRS, FEW, FEW_PAIRS], lambda x, v, p, w, q: (int4(x, v, 32, p).sin(), int4(x, w, 32, q)))
case("int4_linear_three", INT4, [X, FEW, FEW_PAIRS, FEW, FEW_PAIRS, FEW, FEW_PAIRS],
     lambda x, u, o, v, p, w, q: (int4(x, v, 32, p), int4(x, w, 32, q).sin(), int4(x, u, 32, o)))
case("int4_linear_other_reader", INT4, [X, NUMBERS, PAIRS, FEW, FEW_PAIRS], lambda x, v, p, w, q: (int4(x, v, 32, p), int4(x, w, 32, q), x.sin()))
case("int4_linear_other_groups", INT4, [X, NUMBERS, PAIRS, FEW, f(1, 16, 2)], lambda x, v, p, w, q: (int4(x, v, 32, p), int4(x, w, 64, q)))
case("int4_linear_same_weight", INT4, [X, FEW, FEW_PAIRS, FEW_PAIRS], lambda x, w, p, q: (int4(x, w, 32, p), int4(x, w, 32, q)))
case("int4_linear_alone", INT4, [X, FEW, FEW_PAIRS], lambda x, w, p: int4(x, w, 32, p))
case("group_linear", GROUP, [f(4, 6), f(6, 2), f(2, 6), f(6, 8)], lambda a, b, c, d: (a @ b).sum() + (c @ d).sum())
case("group_linear_bias", GROUP, [f(4, 6), f(6, 2), f(2), f(2, 6), f(6, 8), f(8)],
     lambda a, b, p, c, d, q: torch.addmm(p, a, b).sum() + torch.addmm(q, c, d).sum())
case("group_linear_mixed", GROUP, [f(4, 6), f(6, 2), f(2), f(2, 6), f(6, 8)], lambda a, b, p, c, d: torch.addmm(p, a, b).sum() + (c @ d).sum())
case("group_linear_odd", GROUP, [f(4, 6), f(6, 2), f(3, 6), f(6, 8)], lambda a, b, c, d: (a @ b).sum() + (c @ d).sum())
case("group_linear_large", GROUP + ",max_fuse_tensor_size_group_linear:6", [f(4, 6), f(6, 2), f(2, 6), f(6, 8)], lambda a, b, c, d: (a @ b).sum() + (c @ d).sum())


# ---------------------------------------------------------------- products and collectives, piece by piece

PIECES = "micro_pipeline_tp_pass"
MANY = {"numbers": "not compared, because the calls need memory that several GPUs see"}


def collected(x, dim=0):
    whole = c10d.wait_tensor(c10d.all_gather_into_tensor(x, 2, "0"))
    return whole if dim == 0 else torch.cat(torch.chunk(whole, 2), dim)


def shared_out(x, dim=0, op="sum"):
    return c10d.wait_tensor(c10d.reduce_scatter_tensor(x if dim == 0 else torch.cat(torch.chunk(x, 2, dim)), op, 2, "0"))


def batched(x, w):
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], w.shape[-1])


def scaled(a, b, s, t):
    return torch._scaled_mm(a, b.t(), s, t, out_dtype=torch.bfloat16)


def saved(x, w):
    share = c10d.reduce_scatter_tensor(x @ w, "sum", 2, "0")
    return c10d.wait_tensor(share).exp(), share


def kept_matrix(x, w):
    a = collected(x)
    matrix = a.reshape(-1, 6) @ w
    return matrix.reshape(4, 3, 5), matrix.exp()


X2, X3, W, V = f(4, 6), f(2, 3, 6), f(6, 5), f(6, 7)
case("tp_gather", PIECES, [X2, W], lambda x, w: (collected(x) @ w).exp(), **MANY)
case("tp_gather_products", PIECES, [X2, W, V], lambda x, w, v: (lambda a: (a @ w, a @ v))(collected(x)), **MANY)
case("tp_gather_read", PIECES, [X2, W], lambda x, w: (lambda a: (a @ w, a.exp()))(collected(x)), **MANY)
case("tp_gather_batched", PIECES, [X3, W], lambda x, w: batched(collected(x), w).exp(), **MANY)
case("tp_gather_rows", PIECES, [X3, W, V], lambda x, w, v: (lambda a: (batched(a, w), batched(a, v).exp()))(collected(x, 1)), **MANY)
case("tp_gather_rows_read", PIECES, [X3, W], lambda x, w: (lambda a: (batched(a, w), a.exp()))(collected(x, 1)), **MANY)
case("tp_gather_columns", PIECES, [f(4, 1024), f(2048, 5)], lambda x, w: collected(x, 1) @ w, **MANY)
case("tp_gather_few_columns", PIECES, [f(4, 512), f(1024, 5)], lambda x, w: collected(x, 1) @ w)
case("tp_gather_columns_read", PIECES, [f(4, 1024), f(2048, 5)], lambda x, w: (lambda a: (a @ w, a.exp()))(collected(x, 1)))
case("tp_gather_right", PIECES, [X2, f(5, 8)], lambda x, w: w @ collected(x))
case("tp_gather_both", PIECES, [X2], lambda x: (lambda a: a @ a.t())(collected(x)))
case("tp_gather_late_weight", PIECES, [X2, W, V], lambda x, w, v: (lambda a: (a @ w.exp(), a @ v.exp()))(collected(x)), **MANY)
case("tp_gather_matrix_read", PIECES, [X3, W], kept_matrix, **MANY)
E4 = torch.float8_e4m3fn
case("tp_gather_scaled", PIECES, [f(16, 32, dtype=E4), f(16, 32, dtype=E4), f(), f()], lambda x, w, s, t: scaled(collected(x), w, s, t).exp(), **MANY)
case("tp_scatter", PIECES, [X2, W], lambda x, w: shared_out(x @ w).exp(), **MANY)
case("tp_scatter_columns", PIECES, [X2, f(6, 8)], lambda x, w: shared_out(x @ w, 1, "avg"), **MANY)
case("tp_scatter_batched", PIECES, [f(2, 4, 6), W], lambda x, w: shared_out(batched(x, w)), **MANY)
case("tp_scatter_rows", PIECES, [f(2, 4, 6), W], lambda x, w: shared_out(batched(x, w), 1).exp(), **MANY)
case("tp_scatter_read", PIECES, [X2, W], lambda x, w: (lambda y: (shared_out(y), y.exp()))(x @ w))
case("tp_scatter_saved", PIECES, [X2, W], saved, **MANY)
case("tp_scatter_no_product", PIECES, [X2], lambda x: shared_out(x.exp()))
case("tp_scatter_scaled", PIECES, [f(16, 32, dtype=E4), f(16, 32, dtype=E4), f(), f()], lambda x, w, s, t: shared_out(scaled(x, w, s, t)).exp(), **MANY)
case("tp_overlap", PIECES + "=reorder_for_compute_comm_overlap:true", [X2, W, X2, W], lambda x, w, y, v: (collected(x) @ w, y @ v))
case("tp_overlap_needed", PIECES + "=reorder_for_compute_comm_overlap:true", [X2, W, V, f(10, 3)],
     lambda x, w, v, u: shared_out((collected(x) @ w).reshape(4, 10) @ u), **MANY)
case("tp_overlap_two", PIECES + "=reorder_for_compute_comm_overlap:true", [X2, W, X2, X2], lambda x, w, y, z: (collected(x) @ w, collected(y) @ w, z @ w))
case("tp_no_overlap", PIECES, [X2, W, X2, W], lambda x, w, y, v: (collected(x) @ w, y @ v), **MANY)
case("tp_both", PIECES, [X2, W, f(5, 6)], lambda x, w, v: shared_out(torch.relu(collected(x) @ w) @ v), **MANY)


# ---------------------------------------------------------------- recording

def settings(text):
    name, _, rest = text.partition("=")
    values = dict(each.split(":") for each in rest.split(",")) if rest else {}
    return name, {key: True if value == "true" else int(value) for key, value in values.items()}


def apply(gm, passes):
    for name, options in map(settings, passes.split()):
        if name.startswith("fuse_ddp"):
            getattr(ddp_fusion, name)(gm.graph, options.get("bucket_size_mb", 25))
        elif name == INT4:
            quantization.concat_linear_woq_int4(gm)
        elif name == ONEDNN:
            mkldnn_fusion.grouped_gemm_pass(gm.graph)
        elif name == PIECES:
            with config.patch(options), _test_mode(), mock.patch.object(dist, "is_nccl_available", lambda: True):
                micro_pipeline_tp.micro_pipeline_tp_pass(gm.graph)
        elif name == "group_linear":
            with config.patch(post_grad_fusion_options={name: options}):
                group_batch_fusion.group_batch_fusion_passes(gm.graph, pre_grad=False)
        elif name == FSDP:
            comms.remove_fsdp2_unsharded_param_graph_input_usage(gm.graph)
        elif name == INTO:
            comms.reinplace_fsdp_all_gather(gm.graph)
        elif name == WAIT:
            ddp_fusion.schedule_comm_wait(gm.graph)
        else:
            raise ValueError(name)
    stable_topological_sort(gm.graph)   # what comes next in PyTorch's list, and passes rely on it
    gm.graph.lint()


def traced(inputs, function):
    mode = FakeTensorMode()
    with mode:
        tensors = [torch.empty(sizes, dtype=dtype) for sizes, dtype in inputs]
        gm = make_fx(lambda *xs: function(*xs), select_decomp_table())(*tensors)
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            node.name = node.target = node.name.removesuffix("_1")
        if node.target is aten.view.default:
            node.target = aten.reshape.default
    gm.graph.eliminate_dead_code()
    return mode, gm


def hold(gm):
    """All inputs but the first become tensors of the module, as freezing has them."""
    for node in list(gm.graph.nodes)[1:]:
        if node.op == "placeholder":
            node.op, node.target = "get_attr", node.name
            gm.register_buffer(node.name, torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype))


def clean(graph):
    """The graph with the calls that PyTorch's passes leave to be resolved later as what they are."""
    for node in list(graph.nodes):
        if node.target is aten.flatten.using_ints:
            node.target = aten.reshape.default
            node.args = (node.args[0], list(node.meta["val"].shape))
        elif node.target is aten.cat:
            node.target = aten.cat.default
        elif node.target is aten.split:
            node.target = aten.split_with_sizes.default
        elif node.target is aten.reshape:
            node.target = aten.reshape.default
        elif node.target is c10d.all_reduce_coalesced.default and isinstance(node.args[0], torch.fx.Node):
            with graph.inserting_before(node):
                items = [graph.call_function(operator.getitem, (node.args[0], i)) for i in range(len(node.args[0].meta["val"]))]
            node.args = (items, *node.args[1:])
    for node in graph.nodes:
        if node.op == "call_function" and "val" not in node.meta and node.target is not operator.getitem:
            given = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
            node.meta["val"] = node.target(*given[0], **given[1])
        elif node.op == "call_function" and "val" not in node.meta and "val" in node.args[0].meta:
            node.meta["val"] = node.args[0].meta["val"][node.args[1]]
    return graph


def record(name, folder):
    passes, inputs, function, notes = CASES[name]
    mode, gm = traced(inputs, function)
    if passes == INT4:
        hold(gm)
    before = short_form(clean(copy.deepcopy(gm.graph)))
    with torch._inductor.virtualized.V.set_fake_mode(mode):
        try:
            apply(gm, passes)
            for node in gm.graph.nodes:
                if node.op == "get_attr" and "val" not in node.meta:
                    node.meta["val"] = mode.from_tensor(getattr(gm, node.target))
            after = short_form(clean(gm.graph))
            said = "# same\n" if after == before else f"# after\n{after}"
        except AssertionError as error:
            said = f"# stops\n# {str(error).splitlines()[0] if str(error) else 'AssertionError'}\n"
    text = f"# recorded: {name}\n# pass: {passes}\n" + "".join(f"# {key}: {value}".strip() + "\n" for key, value in notes.items())
    Path(folder, name + ".txt").write_text(text + f"# before\n{before}{said}")


if __name__ == "__main__":
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    for each in sys.argv[2:] or list(CASES):
        record(each, sys.argv[1])
