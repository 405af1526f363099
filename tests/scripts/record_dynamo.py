"""Records small modules as Dynamo writes them and as make_fx turns them into ATen calls.

    python record_dynamo.py OUTPUT_FOLDER [NAME...]

One file per module: the Dynamo graph, then the ATen graph of the same placeholders. tests/engine/torch_calls_test.cpp
lowers the first and compares it with the second, in operators and in numbers.
"""
import re
import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

MODULES = {}
# Where the ATen operators are others than make_fx's, and why.
DIFFERS = {
    "assignments": "numbers are written as numbers, not as constant tensors",
    "dropout": "dropout of channels is plain dropout where it does nothing",
    "joins": "torch.concat is torch.cat",
    "losses": "operands of one shape are not broadcast",
    "multihead_masks": "masks are padded by the padding that it means",
    "response": "F.pad is written as the padding that it means",
    "weight_norm": "written as the norm that it means",
    "outs": "what is written to a tensor that the caller gives is computed and copied there",
    "pads": "F.pad is written as the padding that it means",
    "reflection": "F.pad is written as the padding that it means",
    "reductions": "variances are written with their correction",
    "std": "variances are written with their correction",
}


r = torch.randn


def ints(high, *size):
    return torch.randint(0, high, size)


class Holder(nn.Module):
    """Gives a function its submodules as `self`."""

    def __init__(self, function, parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.function(self, *args)


def add(name, inputs, function, dynamic=None, **parts):
    MODULES[name] = (Holder(function, parts).eval() if parts else function, inputs, dynamic)


add("mlp", [r(2, 8)], lambda self, x: self.b(F.relu(self.a(x))), a=nn.Linear(8, 16), b=nn.Linear(16, 4))
add("activations", [r(3, 4)], lambda x: (
    F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x, 0.5), F.leaky_relu(x, 0.2), F.hardswish(x), F.hardsigmoid(x),
    F.hardtanh(x, -2, 2), F.relu6(x), F.mish(x), F.softplus(x, beta=2), F.logsigmoid(x), F.selu(x), F.softsign(x), F.tanhshrink(x),
    F.threshold(x, 0.1, 20.0), torch.sigmoid(x), x.tanh(), F.glu(x, dim=-1)))
add("inplace", [r(3, 4)], lambda x: (F.relu(x + 1, inplace=True), (x * 2).relu_(), (x - 1).clamp_(min=0), F.silu(x / 2, inplace=True)))
add("softmax", [r(3, 4, 5)], lambda x: (
    F.softmax(x, dim=-1), x.softmax(1), torch.softmax(x, 2), F.log_softmax(x, dim=1), F.softmax(x, dim=0, dtype=torch.float64), F.softmin(x, dim=1)))
add("norms", [r(2, 4, 6, 6)], lambda self, x: (self.bn(x), self.ln(x), F.layer_norm(x, (6,))), bn=nn.BatchNorm2d(4), ln=nn.LayerNorm([6, 6]))
add("group_norm", [r(2, 4, 6, 6)], lambda self, x: self.gn(x), gn=nn.GroupNorm(2, 4))
add("embedding", [ints(10, 2, 3)], lambda self, x: self.e(x), e=nn.Embedding(10, 4, padding_idx=-1))
add("convolutions", [r(1, 4, 8, 8)], lambda self, x: self.c(self.b(self.a(x))),
    a=nn.Conv2d(4, 8, 3, padding=1, stride=2), b=nn.Conv2d(8, 8, 3, padding="same", groups=2), c=nn.ConvTranspose2d(8, 4, 2, stride=2))
add("conv1d", [r(1, 4, 8)], lambda self, x: self.a(x), a=nn.Conv1d(4, 6, 3, dilation=2))
add("pools", [r(1, 4, 8, 8)], lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, stride=2, padding=1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (1, 1)),
                                        F.adaptive_avg_pool2d(x, (None, 2))))
add("pool_indices", [r(1, 4, 8, 8)], lambda x: F.max_pool2d(x, 2, return_indices=True))
add("pads", [r(1, 2, 4, 4)], lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 1, 2, 0), value=3.0)))
add("reflection", [r(1, 2, 4, 4)], lambda x: F.pad(x, (1, 1, 2, 0), mode="reflect"))
add("interpolate", [r(1, 2, 4, 4)], lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(6, 6), mode="bilinear", align_corners=False)))
add("arithmetic", [r(3, 4), r(3, 4)], lambda x, y: (
    x + y, x - y, x * 2, x / y, 2 / y, 1 - x, x ** 2, 2 ** x, -x, x // 2, x % 3, torch.add(x, y, alpha=2), x.mul(3), torch.div(x, 2, rounding_mode="floor"),
    abs(x), x.sub(y, alpha=0.5), torch.rsub(x, 1), 3 + x, 2 * x))
add("comparisons", [r(3, 4), r(3, 4)], lambda x, y: (
    x > 0, 0 < x, x <= y, x == y, x != 1, (x > 0) & (y > 0), (x > 0) | (y < 0), ~(x > 0), torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0),
    x.masked_fill(y > 0, float("-inf")), torch.maximum(x, y), torch.logical_and(x > 0, y > 0)))
add("augmented", [r(3, 4), r(3, 4)], lambda x, y: augmented(x, y))
add("reductions", [r(3, 4, 5)], lambda x: (
    x.sum(), x.sum(-1), x.sum(dim=(0, 2), keepdim=True), x.mean(), x.mean((0, 1)), torch.mean(x, dim=1, keepdim=True), x.amax(1), torch.amin(x, dim=(0, 1)),
    (x > 0).any(), (x > 0).all(dim=1), x.var(dim=-1, unbiased=False), torch.var_mean(x, dim=1), x.sum(1, True)))
add("std", [r(3, 4)], lambda x: (x.std(dim=-1), torch.std(x, 0, keepdim=True)))
add("extremes", [r(3, 4)], lambda x: (x.max(dim=1), torch.argmax(x, dim=-1), x.min(), torch.max(x, 1, keepdim=True).values))
add("views", [r(2, 3, 4)], lambda x: (
    x.view(6, 4), x.view(2, -1), x.reshape(-1), x.permute(0, 2, 1), x.transpose(1, 2), x.flatten(1), x.unsqueeze(-1), x[:, :1].squeeze(1), x.expand(2, 3, 4),
    x.unsqueeze(0).expand(5, -1, -1, -1), x.contiguous(), x[0].t(), x[0].T, x.mT, x.view(x.size(0), -1), x.reshape(x.shape[0], 12), x.repeat(1, 2, 1),
    x.flip(1), torch.flatten(x), x.movedim(0, 2), x.unflatten(2, (2, 2))))
add("subscripts", [r(4, 5, 6), ints(4, 3)], lambda x, i: (
    x[0], x[-1, 2], x[:, 1:3], x[..., 0], x[:, None], x[1:, ..., ::2], x[i], x[:, i], x[i, :, i], x[None, 0], x[:, :-1], x[:]))
add("assignments", [r(4, 5), r(5), ints(4, 3)], lambda x, y, i: assignments(x, y, i))
add("joins", [r(2, 3), r(2, 3)], lambda x, y: (torch.cat([x, y], dim=1), torch.cat((x, y)), torch.stack([x, y], dim=-1), torch.concat([x, y], -1)))
add("parts", [r(4, 6)], lambda x: (*x.chunk(2, dim=1), *torch.split(x, 2), *x.split([1, 5], dim=1), *x.unbind(0), x.narrow(1, 2, 3)))
add("casts", [r(2, 3), ints(5, 2, 3)], lambda x, i: (
    x.to(torch.float64), x.half(), i.float(), x.to(i.dtype), x.type_as(i), x.to("cpu"), x.to(torch.bfloat16, copy=True), i.bool(), x.double().float()))
add("factories", [r(2, 3)], lambda x: (
    torch.zeros(2, 3) + x, torch.ones_like(x), torch.full((2, 3), 2.0) * x, torch.arange(3) + x, torch.arange(0, 6, 2), x.new_zeros(2, 2), torch.zeros_like(x),
    torch.arange(3, dtype=torch.float32), x.new_full((3,), 7)))
add("products", [r(3, 4), r(4, 5), r(2, 3, 4), r(2, 4, 5)], lambda a, b, c, d: (
    a @ b, torch.mm(a, b), torch.bmm(c, d), torch.matmul(c, b), torch.addmm(a[:, :1], a, b), torch.baddbmm(torch.ones(5), c, d), torch.outer(a[0], b[0])))
add("attention", [r(1, 2, 4, 8), r(1, 2, 4, 8), r(1, 2, 4, 8)], lambda q, k, v: (
    F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), (q @ k.transpose(-2, -1) / 8 ** 0.5).softmax(-1) @ v))
add("losses", [r(4, 5), ints(5, 4), r(4, 5)], lambda x, t, y: (
    F.cross_entropy(x, t), F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y),
    F.nll_loss(F.log_softmax(x, -1), t)))
add("dropout", [r(2, 3)], lambda self, x: (self.d(x), F.dropout(x, 0.3, training=False), F.dropout2d(x[None, None], training=False)), d=nn.Dropout(0.5))
add("gather", [r(4, 5), ints(4, 2, 5)], lambda x, i: (torch.gather(x, 0, i), x.index_select(1, i[0, :3]), x.scatter(0, i, 1.0), x.scatter_add(0, i, x[:2])))
add("positions", [r(2, 6, 8)], lambda x: positions(x))
add("dynamic", [r(5, 3)], lambda x: x.view(-1, x.size(1)).relu() + x.shape[0], True)
add("dynamic_attention", [r(3, 5, 24)], lambda x: dynamic_attention(x), True)
add("transformer_block", [r(2, 4, 8)], lambda self, x: transformer(self, x), qkv=nn.Linear(8, 24), o=nn.Linear(8, 8), n=nn.LayerNorm(8),
    up=nn.Linear(8, 16), down=nn.Linear(16, 8))
add("multihead", [r(3, 2, 8), r(4, 2, 8), torch.tensor([[False, False, True, True], [False] * 4])], lambda self, q, k, hidden: (
    self.a(q, q, q, need_weights=False)[0], *self.a(q, k, k, key_padding_mask=hidden), self.a(q, k, k.neg(), average_attn_weights=False)[1]),
    a=nn.MultiheadAttention(8, 2))
add("multihead_masks", [r(3, 8), r(4, 6), r(3, 5) > 0], lambda self, q, k, mask: self.a(q, k, k, attn_mask=mask[:, :4]),
    a=nn.MultiheadAttention(8, 2, kdim=6, vdim=6, add_bias_kv=True, add_zero_attn=True))
add("bags", [ints(10, 3, 2), ints(10, 7)], lambda self, m, i: (self.e(m), self.s(i, torch.arange(0, 6, 2))),
    e=nn.EmbeddingBag(10, 4), s=nn.EmbeddingBag(10, 4, mode="sum", padding_idx=0))
add("response", [r(2, 5, 4), r(2, 5, 3, 4)], lambda x, y: (F.local_response_norm(x, 3), F.local_response_norm(y, 2, alpha=0.1, k=2.0)))
add("weight_norm", [r(2, 4, 6)], lambda self, x: self.c(x), c=nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 3, 2)))
add("tensors_one_by_one", [r(3, 4), r(4, 5), r(2)], lambda x, y, z: (
    torch.einsum("ab,bc->ac", x, y), torch.einsum("ab,bc->cab", [x, y]), *torch.meshgrid(z, z, indexing="xy"), x[None]))
add("windows", [r(1, 2, 6, 8), r(1, 3, 4, 2), r(1, 2, 3)], lambda x, g, t: (
    F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, mode="nearest", padding_mode="reflection", align_corners=True),
    F.affine_grid(t, (1, 1, 3, 4), align_corners=False), F.fold(F.unfold(x, 2), (6, 8), 2), F.upsample(x, scale_factor=2),
    F.upsample_bilinear(x, size=(8, 9)), F.upsample_nearest(x, size=(3, 5)), F.pad(x, (1, 2, 3, 0), mode="circular")))
add("adaptive_pools", [r(2, 3, 6), r(1, 2, 6, 8)], lambda x, y: (
    F.adaptive_max_pool1d(x, 2), *F.adaptive_max_pool2d(y, (3, None), return_indices=True), F.adaptive_max_pool2d(y, 3)))
add("blocks", [r(2, 3), r(4), r(2)], lambda x, y, z: (torch.block_diag(x, y), torch.cartesian_prod(y, z)))
add("power_pools", [r(2, 3, 6).abs(), r(1, 2, 6, 8).abs()], lambda x, y: (F.lp_pool1d(x.abs(), 2, 2), F.lp_pool2d(y.abs(), 3, (2, 3), stride=2, ceil_mode=True)))
add("multilabel", [r(3, 4), r(3, 4), r(4)], lambda x, t, w: (
    F.multilabel_soft_margin_loss(x, t), F.multilabel_soft_margin_loss(x, t, weight=w, reduction="none"), F.multilabel_soft_margin_loss(x, t, reduction="sum")))
add("outs", [r(3, 4), r(4), r(3, 4)], lambda x, y, z: (torch.add(x, y, out=z), torch.sum(x, 1, out=torch.empty(3)), F.normalize(x, dim=1, out=torch.empty(3, 4))))
add("complex_parts", [r(3, 4), r(3, 4), r(4)], lambda x, y, z: (
    torch.complex(x, y).real, torch.complex(x, y).imag * 2, *torch.broadcast_tensors(x, z)))
add("poisson", [r(3, 4), r(3, 4).abs()], lambda x, y: (F.poisson_nll_loss(x, y), F.poisson_nll_loss(y, y, log_input=False, full=True, reduction="sum")))


def dynamic_attention(x):
    batch, length, _ = x.shape
    q, k, v = x.view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    return ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 8)


def augmented(x, y):
    z = x + 1
    z += y
    z *= 2
    z -= 1
    z /= 3
    return z


def assignments(x, y, i):
    z = x * 1
    z[0] = y
    z[1, 2:4] = 3.0
    z[:, -1] += 1
    z[i] = y
    w = x.clone()
    w[...] = 2.0
    w[None, 0, :2] = 1.0
    return z, w


def positions(x):
    b, n, c = x.shape
    steps = torch.arange(n, device=x.device)
    mask = steps[None, :] > steps[:, None]
    return (x @ x.transpose(1, 2)).masked_fill(mask, float("-inf")).softmax(dim=-1).view(b, n, n)


def transformer(self, x):
    b, t, c = x.size()
    q, k, v = self.qkv(self.n(x)).split(c, dim=2)
    q, k, v = (p.view(b, t, 2, c // 2).transpose(1, 2) for p in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + self.o(y.transpose(1, 2).contiguous().view(b, t, c))
    return x + self.down(F.gelu(self.up(self.n(x))))


def clean(text):
    """Without provenance, which holds paths, and without blank lines."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#")) + "\n"


def filled(name, number, example):
    """Values that the test can make again: of element k of input `number`."""
    k = torch.arange(example.numel())
    if example.dtype.is_floating_point:
        values = ((k * 37 + number * 11) % 101 - 50).double() / 25
        if "var" in name:
            values = values.abs() + 0.5
    else:
        values = (k * 7 + number * 3) % 4
    return values.to(example.dtype).reshape(example.shape)


def described(value):
    """dtype, sizes, mean and a mean weighted by position, from which a wrong element shows."""
    flat = value.double().flatten()
    weights = torch.arange(flat.numel()).remainder(13).double()
    sizes = ", ".join(map(str, value.shape))
    return f"# {str(value.dtype)[6:]} [{sizes}] {flat.mean().item():.6g} {(flat * weights).mean().item():.6g}\n"


def results(gm):
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    examples = [node.meta["example_value"] for node in gm.graph.nodes if node.op == "placeholder"]
    inputs = [filled(name, number, torch.empty(example.shape, dtype=example.dtype)) for number, (name, example) in enumerate(zip(names, examples))]
    flat = torch.utils._pytree.tree_leaves(gm(*inputs))
    return "".join(described(value) for value in flat)


def record(name, folder):
    function, inputs, dynamic = MODULES[name]
    graphs = []

    def backend(gm, example):
        aten = None if dynamic else make_fx(gm, pre_dispatch=True)(*example)
        graphs.append((gm.print_readable(print_output=False), aten.print_readable(print_output=False) if aten else None,
                       None if dynamic else results(gm)))
        return gm.forward
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*inputs)
    assert len(graphs) == 1, name
    dynamo, aten, values = graphs[0]
    text = f"# module: {name}\n"
    if name in DIFFERS:
        text += f"# differs: {DIFFERS[name]}\n"
    text += f"# dynamo\n{clean(dynamo)}"
    if aten:
        text += f"# aten\n{clean(aten)}# results\n{values}"
    Path(folder, name + ".txt").write_text(text)


if __name__ == "__main__":
    torch.manual_seed(0)
    wanted = sys.argv[2:] or list(MODULES)
    for each in wanted:
        try:
            record(each, sys.argv[1])
        except Exception as error:
            print(f"{each}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
