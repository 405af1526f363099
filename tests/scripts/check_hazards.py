#!/usr/bin/env python3
"""Holds the hazards that tests/cases/hazards describe to PyTorch 2.11: what each says that PyTorch does must be what it does.

    python3 tests/scripts/check_hazards.py

Needs PyTorch 2.11, no GPU: tensors "on the GPU" are fake ones, which suffices for what decides here. Prints a line per hazard; exits
with the number of those that PyTorch does not have.
"""
import contextlib
import operator
import sys
import traceback
from unittest import mock

import torch
from torch._inductor import config, pattern_matcher
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes import joint_graph, misc_patterns, pad_mm, post_grad
from torch._inductor.fx_passes.fuse_attention import _sfdp_pattern_5, _sfdp_pattern_24
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
failures = 0


def report(hazard, holds, said):
    global failures
    failures += not holds
    print(f"{hazard}: {'' if holds else 'NOT: '}{said}")


def counted(name):
    return torch._dynamo.utils.counters["inductor"][name]


def traced(function, *types):
    """The function's graph on fake tensors: (sizes, dtype, device)."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        inputs = [torch.empty(sizes, dtype=dtype, device=device) for sizes, dtype, device in types]
        return mode, make_fx(function, select_decomp_table(), tracing_mode="real")(*inputs)


def calls(graph_module, target):
    return [node for node in graph_module.graph.nodes if node.target is target]


def attention_over_another_dim():
    def scores_over_queries(q, k, v):
        return torch.matmul(torch.matmul(q, k.transpose(-2, -1)).div(8.0).softmax(dim=-2), v)

    q = ((2, 3, 5, 8), torch.float32, "cpu")
    mode, module = traced(scores_over_queries, q, q, q)
    before = counted("fuse_attention")
    with mode:
        joint_graph.patterns.apply(module.graph)
    report("H-1", counted("fuse_attention") == before + 1, "a softmax over the queries is fused as if it were over the keys")


def attention_without_check():
    q = ((2, 3, 5, 8), torch.float32, "cuda:0")
    mask = ((1, 1, 5, 5), torch.float32, "cuda:0")
    counts = []
    for form in (_sfdp_pattern_5, _sfdp_pattern_24):
        mode, module = traced(lambda a, b, c, m: form(a, b, c, m), q, q, q, mask)
        before = counted("fuse_attention")
        with mode:
            joint_graph.patterns.apply(module.graph)
        counts.append(counted("fuse_attention") - before)
    report("H-2", counts == [0, 1], f"in f32 on the GPU, without tf32, form 5 is fused {counts[0]} times, form 24 {counts[1]} times")


def training_products():
    def step(a, b, t):
        y = torch.mm(a, b)
        return y, *torch.autograd.grad(y, (a, b), t)

    # Patterns do not ask for devices; checks come later.
    inputs = [torch.randn(sizes, requires_grad=True) for sizes in ((16, 7), (7, 24))]
    module = make_fx(step, select_decomp_table())(*inputs, torch.randn(16, 24))
    product = calls(module, aten.mm.default)[0]
    entries = joint_graph.patterns.patterns[("call_function", aten.mm.default)]
    stored = [bool(one.pattern.match(product)) for one in entries if isinstance(one.pattern, pattern_matcher.MultiOutputPattern)]
    examples = [torch.empty(4, 4, requires_grad=True) for _ in range(2)]
    anew = bool(pattern_matcher.gen_pattern(pad_mm.mm_pattern, examples, pattern_matcher.joint_fwd_bwd).match(product))
    report("H-3", stored == [False] and anew, f"the stored pattern of a product with its gradients: found {stored}; traced anew: {anew}")


def lost_dtype():
    def scatter(sel):
        return aten.scatter.value(aten.full.default([4, 5], 0.0, dtype=torch.float16, device="cpu", pin_memory=False), 1, sel, 1.0)

    mode, module = traced(scatter, ((4, 1), torch.int64, "cpu"))
    with mode:
        joint_graph.patterns.apply(module.graph)
    result = module.graph.find_nodes(op="output")[0].args[0]
    report("H-4", result.meta["val"].dtype == torch.float32 if "val" in result.meta else False, "a scatter into f16 zeros becomes f32")


def whole_permutation():
    mode, module = traced(lambda x: x[torch.randperm(64)], ((64, 8), torch.float32, "cpu"))
    try:
        with mode:
            joint_graph.patterns.apply(module.graph)
        raised = ""
    except Exception as error:  # noqa: BLE001: whatever it raises is the hazard
        raised = str(error)
    report("H-5", "slice_shape" in raised, "x[randperm(n)] raises, because slice_shape is not found")


def erased_input():
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    x.meta["val"] = y.meta["val"] = torch.empty(4)
    graph.call_function(aten.view.dtype, (x, torch.int32)).meta["val"] = torch.empty(4, dtype=torch.int32)
    graph.output((y,))
    module = torch.fx.GraphModule({}, graph)
    joint_graph.remove_redundant_views(module)
    left = [node.name for node in module.graph.find_nodes(op="placeholder")]
    report("H-6", left == ["y"], f"an input whose last view goes is erased; left: {left}")


def intermediate_rounding():
    convert = torch.ops.prims.convert_element_type.default
    mode, module = traced(lambda x: convert(convert(x, torch.float16), torch.float32), ((4,), torch.float32, "cpu"))
    with mode:
        joint_graph.patterns.apply(module.graph)
    left = calls(module, convert)
    report("H-7", len(left) == 1 and left[0].args[1] == torch.float32, "f32 -> f16 -> f32 becomes one conversion to f32, so the rounding is lost")


def softmax_of_another_dim():
    from torch._inductor.fx_passes import apply_gumbel_max_trick, pre_grad

    graph = torch.fx.Graph()
    logits = graph.placeholder("logits")
    noise = graph.call_method("exponential_", (graph.call_function(torch.empty_like, (logits,)), 1.0))
    quotient = graph.call_function(operator.truediv, (graph.call_function(torch.nn.functional.softmax, (logits, 0)), noise))
    graph.output(graph.call_function(torch.argmax, (quotient,), {"dim": -1, "keepdim": True}))
    before = counted("apply_gumbel_max_trick")
    assert apply_gumbel_max_trick
    pre_grad.apply_gumbel_max_trick_pass.apply(torch.fx.GraphModule({}, graph))
    report("H-8", counted("apply_gumbel_max_trick") == before + 1, "the sampling trick does not ask for the dim of the softmax")


def zero_product():
    mode, module = traced(lambda x: aten.mul.Tensor(x, 0), ((4,), torch.float32, "cpu"))
    with mode:
        joint_graph.constant_fold_uniform_value(module)
    report("H-9", len(calls(module, aten.full.default)) == 1, "x * 0 becomes zeros, also where x is NaN")


def pieces_count_as_computed():
    def product(x, b):
        return torch.mm(torch.split(x, 16)[0], b)

    f16 = torch.float16
    _, module = traced(product, ((32, 7), f16, "cuda:0"), ((7, 24), f16, "cuda:0"))
    node = calls(module, aten.mm.default)[0]
    match = mock.Mock(kwargs={"mat1": node.args[0], "mat2": node.args[1]})
    piece, whole = (pad_mm.should_exclude_padding_time(match, name) for name in ("mat1", "mat2"))
    _, sliced = traced(lambda x, b: torch.mm(x[0:16], b), ((32, 7), f16, "cuda:0"), ((7, 24), f16, "cuda:0"))
    node = calls(sliced, aten.mm.default)[0]
    match = mock.Mock(kwargs={"mat1": node.args[0], "mat2": node.args[1]})
    slice_counts = pad_mm.should_exclude_padding_time(match, "mat1")
    report("H-10", piece and not whole and not slice_counts, "the padding of a split's piece of an input is not timed; of a slice of it, it is")


def device_with_index():
    counts = []
    entries = post_grad.pass_patterns[1].patterns[("call_function", torch.ops.prims.convert_element_type.default)]
    for text in ("cuda:0", "cuda"):
        before = len(entries)
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch("torch._subclasses.fake_tensor.init_gpu_context", lambda *_: None))
            for name, value in (("get_device_capability", lambda *_: (10, 0)), ("is_available", lambda: True), ("_lazy_init", lambda: None), ("current_device", lambda: 0)):
                stack.enter_context(mock.patch.object(torch.cuda, name, value))
            stack.enter_context(FakeTensorMode())
            misc_patterns._misc_patterns_init.__wrapped__(torch.device(text))
        counts.append(len(entries) - before)
    report("H-11", counts[0] == 0 and counts[1] > 0, f"rules for rounding exponents up: {counts[0]} for cuda:0, {counts[1]} for cuda")


def counted_refusals():
    mode, module = traced(lambda x: aten.view.default(x, [8, 2]), ((4, 4), torch.float32, "cpu"))
    with mode:
        count = joint_graph.early_patterns.apply(module.graph)
    report("H-12", count == 1 and len(calls(module, aten.view.default)) == 1, "a view that stays is counted")


def main():
    if not torch.__version__.startswith("2.11"):
        sys.exit(f"this is PyTorch {torch.__version__}, not 2.11")
    joint_graph.lazy_init(torch.device("cpu"))
    with config.patch(force_shape_pad=False):
        for check in (attention_over_another_dim, attention_without_check, training_products, lost_dtype, whole_permutation, erased_input, intermediate_rounding,
                      softmax_of_another_dim, zero_product, pieces_count_as_computed, device_with_index, counted_refusals):
            try:
                check()
            except Exception as error:  # noqa: BLE001
                traceback.print_exc()
                report(check.__name__, False, f"{type(error).__name__}: {error}")
    sys.exit(failures)


if __name__ == "__main__":
    main()
