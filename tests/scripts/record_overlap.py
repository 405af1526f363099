"""Writes the order that PyTorch's overlap scheduling gives to the graphs of a case file.

    python record_overlap.py CASE_FILE            writes each case's `after`
    python record_overlap.py CASE_FILE --check    only says which differ

Processes are pretended (fake process group), and no time is measured: products take what their operations, as PyTorch counts them,
or their bytes take on the device that the case's options name. tests/engine/cases_test.cpp runs our pass on the same graphs.
"""
import ast
import operator
import re
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives  # noqa: F401  registers the operators
from torch._inductor import comm_analysis
from torch._inductor.fx_passes import overlap_scheduling as overlap
from torch._subclasses import FakeTensorMode
from torch.distributed import distributed_c10d
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils import _runtime_estimation
from torch.utils._pytree import tree_flatten, tree_map_only
from torch.utils.flop_counter import flop_registry

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "b8": torch.bool}
# Bandwidth of the memory (GB/s) and arithmetic (TFLOP/s) by dtype.
GPUS = {
    "v100": (900, {torch.float16: 125, torch.bfloat16: 125, torch.float32: 15.7, torch.float64: 7.8}, comm_analysis.NVIDIA_GPU_TYPE.VOLTA),
    "a100": (1555, {torch.float16: 312, torch.bfloat16: 312, torch.float32: 19.5, torch.float64: 9.7}, comm_analysis.NVIDIA_GPU_TYPE.AMPERE),
    "h100": (3352, {torch.float16: 989.4, torch.bfloat16: 989.4, torch.float32: 66.9, torch.float64: 33.5}, comm_analysis.NVIDIA_GPU_TYPE.HOPPER),
    "b200": (8000, {torch.float16: 2250, torch.bfloat16: 2250, torch.float32: 80, torch.float64: 40}, comm_analysis.NVIDIA_GPU_TYPE.BLACKWELL),
}
NAMESPACES = {name: getattr(torch.ops, name) for name in ("aten", "prims", "_c10d_functional")}


def read_type(text):
    dtype, sizes, strides, device = re.fullmatch(r"(\w+)\[([\d, ]*)\](?:\[([\d, ]*)\])?(\S*)", text).groups()
    sizes = [int(s) for s in sizes.split(",") if s.strip()]
    strides = None if strides is None else [int(s) for s in strides.split(",") if s.strip()]
    return DTYPES[dtype], sizes, strides, device or "cpu"


def make_input(text):
    dtype, sizes, strides, device = read_type(text)
    if strides is None:
        return torch.empty(sizes, dtype=dtype, device=device)
    return torch.empty_strided(sizes, strides, dtype=dtype, device=device)


def build(text, mode):
    """The graph of a case's text, with types in the nodes, and the line of each name."""
    function = ast.parse(text).body[0]
    graph = torch.fx.Graph()
    env = {}

    def value(tree):
        if isinstance(tree, ast.Name):
            return env[tree.id]
        if isinstance(tree, ast.List):
            return [value(item) for item in tree.elts]
        if isinstance(tree, ast.Tuple):
            return tuple(value(item) for item in tree.elts)
        if isinstance(tree, ast.Attribute):
            return eval(ast.unparse(tree), {"torch": torch})
        if isinstance(tree, ast.Call):
            return torch.device(**{k.arg: value(k.value) for k in tree.keywords})
        return ast.literal_eval(tree)

    def call(tree):
        if isinstance(tree, ast.Subscript):
            return operator.getitem, (value(tree.value), value(tree.slice)), {}
        target = eval(ast.unparse(tree.func), dict(NAMESPACES))
        return target, tuple(value(arg) for arg in tree.args), {k.arg: value(k.value) for k in tree.keywords}

    def typed(node):
        if node.op == "call_function":
            args, kwargs = tree_map_only(torch.fx.Node, lambda n: n.meta["val"], (node.args, node.kwargs))
            node.meta["val"] = node.target(*args, **kwargs)
        return node

    with mode:
        for parameter in function.args.args:
            node = graph.placeholder(parameter.arg)
            node.meta["val"] = make_input(parameter.annotation.value)
            env[parameter.arg] = node
        for line in function.body:
            if isinstance(line, ast.Return):
                graph.output(value(line.value))
                continue
            name = (line.target if isinstance(line, ast.AnnAssign) else line.targets[0]).id
            target, args, kwargs = call(line.value)
            env[name] = typed(graph.create_node("call_function", target, args, kwargs, name=name))
            assert env[name].name == name, name
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def settings_of(head):
    found = {}
    for word in re.findall(r"^# options: *(.*)$", head, re.M):
        for option in word.split():
            if option.startswith("overlap_scheduling="):
                found = dict(pair.split(":") for pair in option.split("=", 1)[1].split(","))
    return found


def product_ms(node, tflops, gbps):
    args, kwargs = tree_map_only(torch.fx.Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    out = node.meta["val"]
    flat_in = [n.meta["val"] for n in node.all_input_nodes]
    flat_out, _ = tree_flatten(out)
    moved = sum(_runtime_estimation.get_num_bytes(t) for t in [*tree_flatten(flat_in)[0], *flat_out] if isinstance(t, torch.Tensor))
    flops = flop_registry[node.target.overloadpacket](*args, **kwargs, out_val=out)
    dtype = next(t for t in flat_out if isinstance(t, torch.Tensor)).dtype
    return max(moved / gbps / 1e6, flops / (0.75 * tflops.get(dtype, tflops[torch.float32]) * 1e9))


def group_sizes(text, fallback):
    sizes = {}
    for size, name in re.findall(r"(?:all_gather_into_tensor|reduce_scatter_tensor)\S*\(.*?, (\d+), '(\w+)'\)", text):
        sizes[name] = int(size)
    return lambda name: sizes.get(name, fallback)


PLAIN = ("max_in_flight_gb", "max_compute_pre_fetch", "compute_overlap_multipler", "max_coll_distance", "max_memory_increase_gb", "max_memory_increase_ratio")


def scheduled(text, settings):
    """The lines of the case in PyTorch's order."""
    mode = FakeTensorMode()
    gm = build(text, mode)
    gbps, tflops, generation = GPUS[settings.get("gpu", "a100")]
    gbps = float(settings.get("dram_gbps", gbps))
    overlap.benchmark_node_with_cache_key = lambda n, custom=None: (product_ms(n, tflops, gbps), None)
    _runtime_estimation.get_gpu_dram_gbps = lambda: gbps
    comm_analysis.get_gpu_type = lambda: generation
    distributed_c10d._get_group_size_by_name = group_sizes(text, int(settings.get("group_size", 8)))
    pg = distributed_c10d._get_default_group()
    distributed_c10d._resolve_process_group = lambda name: pg
    overlap.OverlapScheduler._align_compute_nodes_runtime_estimations_across_all_distributed_ranks = lambda self: None
    options = {key: float(settings[key]) for key in PLAIN if key in settings}
    options["enable_fusion_regions"] = settings.get("enable_fusion_regions", "true") == "true"
    with mode:
        gm = overlap.schedule_overlap_bucketing(gm, **options)
    if any(n.target is torch.ops.prims.device_put.default for n in gm.graph.nodes):
        text = re.sub(r"(device_put\.default\(.*), True\)", r"\1)", text)
    lines = text.rstrip("\n").split("\n")
    of = {line.strip().split(":")[0].split(" =")[0]: line for line in lines[1:-1]}
    order = [node.name for node in gm.graph.nodes if node.op == "call_function"]
    # Calls that had been put into one get new names when they are taken out again.
    if set(order) != set(of):
        order = restored(order, gm, text)
    assert sorted(order) == sorted(of), (order, list(of))
    return "\n".join([lines[0].replace("def before(", "def after("), *(of[name] for name in order), lines[-1]]) + "\n"


def restored(order, gm, text):
    """Names of the original nodes, found by what they compute; calls that compute the same are told apart by their order."""
    def keys(graph):
        known, out, twice = {}, {}, {}
        for node in graph.nodes:
            if node.op == "placeholder":
                known[node] = node.name
                continue
            if node.op == "output":
                continue
            args = torch.fx.node.map_arg((node.args, tuple(sorted(node.kwargs.items()))), lambda n: known[n])
            key = f"{node.target}{args}"
            twice[key] = twice.get(key, -1) + 1
            known[node] = f"{key}#{twice[key]}"
            out[node.name] = known[node]
        return out
    before = {key: name for name, key in keys(build(text, FakeTensorMode()).graph).items()}
    return [before[key] for key in keys(gm.graph).values()]


def main():
    path, check = Path(sys.argv[1]), "--check" in sys.argv
    dist.init_process_group(backend="fake", rank=0, world_size=8, store=FakeStore())
    out, same, differ = [], 0, []
    for part in re.split(r"^(?=# case:)", path.read_text(), flags=re.M):
        if "# pass: overlap_scheduling" not in part or "# fails:" in part or "collective_bucketing" in part:
            out.append(part)
            continue
        head, rest = part[:part.index("def before(")], part[part.index("def before("):]
        before = rest.split("def after(")[0].strip() + "\n"
        after = "def after(" + rest.split("def after(")[1].strip() + "\n" if "def after(" in rest else before.replace("def before(", "def after(")
        wanted = scheduled(before, settings_of(head))
        if wanted == after:
            same += 1
        else:
            differ.append(re.search("# case: (.*)", head).group(1))
        unchanged = wanted == before.replace("def before(", "def after(")
        out.append(head + before + ("" if unchanged else "\n" + wanted) + "\n")
    print(f"{same} as written, {len(differ)} differ: {differ}")
    if not check:
        path.write_text("".join(out).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
