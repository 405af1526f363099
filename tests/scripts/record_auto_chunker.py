#!/usr/bin/env python3
"""Records what PyTorch's auto-chunker makes of joint graphs.

    python3 tests/scripts/record_auto_chunker.py > tests/data/auto_chunker.txt

Needs PyTorch 2.11, no GPU. tests/engine/auto_chunker_test.cpp reads the file. A case is its name, the joint graph as the pass
gets it, and either the calls of the graph that it makes and of its first body, or PyTorch's reason for leaving it alone:

    # case: name
    # settings: num_chunk:8                 (where they are not PyTorch's own)
    # main: 4 aten.chunk.default; ...
    # body: 1 aten.mm.default; ...
    # refused: ...
    def forward(...): ...
"""
import collections
import operator
import sys

import torch
import torch._inductor.config as config
import torch._inductor.inductor_prims  # noqa: F401  (registers prims.fma, which the chunker's rules name)
import torch._inductor.fx_passes.auto_chunker as auto_chunker
import torch.nn.functional as F

config.auto_chunker.enable = True
config.force_disable_caches = True
DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.int64: "i64", torch.bool: "b8", torch.float64: "f64"}
ROWS, INNER, WIDE = 512, 8, 2048


class Stop(BaseException):
    pass


class Linear(torch.nn.Module):
    def __init__(self, loss, bias=False, dtype=torch.float32, wide=WIDE):
        super().__init__()
        self.linear = torch.nn.Linear(INNER, wide, bias=bias, dtype=dtype)
        self.loss = loss

    def forward(self, x, t):
        return self.loss(self.linear(x), t)


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(INNER, WIDE)
        self.second = torch.nn.Linear(INNER, 2 * WIDE)

    def forward(self, x, t):
        return F.cross_entropy(self.first(x), t) + F.cross_entropy(self.second(x), t)


def entropy(**options):
    return lambda y, t: F.cross_entropy(y, t, **options)


def flat(y, t):
    return F.cross_entropy(y.view(-1, y.shape[-1]), t.view(-1))


def cases():
    """name, module, shape of the input, its dtype, chunks"""
    rows = (ROWS, INNER)
    bf16, f32 = torch.bfloat16, torch.float32
    yield "cross entropy", Linear(entropy()), rows, f32, None
    yield "with a bias", Linear(entropy(), bias=True), rows, f32, None
    yield "bf16", Linear(entropy(), dtype=bf16), rows, bf16, None
    yield "bf16 with a bias", Linear(entropy(), bias=True, dtype=bf16), rows, bf16, None
    yield "bf16, the loss in f32", Linear(lambda y, t: F.cross_entropy(y.float(), t), dtype=bf16), rows, bf16, None
    yield "summed", Linear(entropy(reduction="sum")), rows, f32, None
    yield "gradients accumulate", Linear(lambda y, t: F.cross_entropy(y, t) / 4), rows, f32, None
    yield "sequences", Linear(flat, bias=True), (4, 128, INNER), f32, None
    yield "log_softmax and nll_loss", Linear(lambda y, t: F.nll_loss(F.log_softmax(y, -1), t)), rows, f32, None
    yield "a smaller last chunk", Linear(entropy()), (515, INNER), f32, None
    yield "three chunks", Linear(entropy()), rows, f32, 3
    yield "smoothed labels", Linear(entropy(label_smoothing=0.1)), rows, f32, None
    yield "a loss per row", Linear(entropy(reduction="none")), rows, f32, None
    yield "not large enough", Linear(entropy(), wide=20), rows, f32, None
    yield "a trivial loss", Linear(lambda y, t: y.sum()), rows, f32, None
    yield "squares", Linear(lambda y, t: (y * y).mean()), rows, f32, None
    yield "gelu", Linear(lambda y, t: F.gelu(y).sum()), rows, f32, None
    yield "exponentials", Linear(lambda y, t: torch.exp(y)), rows, f32, None
    yield "two products", Twice(), rows, f32, None


def type_text(value):
    text = f"{DTYPES[value.dtype]}{list(value.shape)}"
    if not value.is_contiguous():
        text += str(list(value.stride()))
    return text


def argument(value):
    if isinstance(value, torch.fx.Node):
        return value.name
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(argument, value)) + "]"
    if isinstance(value, torch.device):
        return f"device(type='{value.type}')"
    return str(value)


def graph_text(module):
    inputs, lines, result = [], [], None
    for node in module.graph.nodes:
        if node.op == "placeholder":
            inputs.append(f'{node.name}: "{type_text(node.meta["val"])}"')
        elif node.op == "output":
            flat_values = torch.utils._pytree.tree_leaves(node.args[0], is_leaf=lambda v: v is None)
            result = "(" + ", ".join(argument(v) for v in flat_values) + ",)"
        else:
            words = [argument(a) for a in node.args] + [f"{k} = {argument(v)}" for k, v in node.kwargs.items()]
            lines.append(f'    {node.name}: "{type_text(node.meta["val"])}" = {node.target}({", ".join(words)})')
    return "\n".join([f"def forward({', '.join(inputs)}):", *lines, f"    return {result}"])


def calls(graph):
    counts = collections.Counter()
    for node in graph.nodes:
        if node.op == "call_function":
            target = node.target
            name = "operator.getitem" if target is operator.getitem else str(target).replace("torch.ops.", "")
            counts["higher_order.invoke_subgraph" if "invoke_subgraph" in name else name] += 1
    return "; ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def main():
    original = auto_chunker.chunk
    head = []

    def record(module):
        text = graph_text(module)
        try:
            made = original(module)
            print(*head, f"# main: {calls(made.graph)}", f"# body: {calls(made.chunking_subgraph_0.graph)}", text, "", sep="\n")
        except Exception as error:  # every way of leaving the graph alone is recorded, crashes too
            reason = str(error).split("\n")[0]
            print(*head, f"# refused: {type(error).__name__}: {reason}", text, "", sep="\n")
        raise Stop

    auto_chunker.chunk = record
    print(__doc__.split("\n")[0].join(["# ", ""]) + " Made by tests/scripts/record_auto_chunker.py.\n")
    for name, module, shape, dtype, chunks in cases():
        torch._dynamo.reset()
        config.auto_chunker.num_chunk = chunks
        head[:] = [f"# case: {name}"] + ([f"# settings: num_chunk:{chunks}"] if chunks else [])
        x = torch.randn(*shape, dtype=dtype, requires_grad=True)
        t = torch.randint(0, 20, shape[:-1])
        try:
            torch.compile(module)(x, t)
        except Stop:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
