#!/usr/bin/env python3
"""Records joint graphs of small functions as PyTorch makes them, for tests/engine/joint_test.cpp.

Needs PyTorch 2.11:  python tests/scripts/record_joint.py [NAME...]
Writes tests/cases/joint/NAME.txt: the function as torch.export sees it (before any decomposition), then the joint graph
that AOTAutograd hands to the partitioner with TorchInductor's decompositions, without the joint-graph passes. Both are in
Cutaway's short FX text. Functions are in float64, so that the test can hold gradients against differences.
"""
import os
import sys

import torch
import torch.nn.functional as F
import torch._inductor.lowering  # registers what decompositions ask for
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import default_partition
from torch._inductor.decomposition import select_decomp_table

SHORT = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8",
         torch.complex64: "c64"}


def type_text(value):
    if not isinstance(value, torch.Tensor):
        return None
    sizes = list(value.shape)
    row_major = torch.empty(sizes, device="meta").stride()
    text = SHORT[value.dtype] + str(sizes)
    return text if value.stride() == row_major else text + str(list(value.stride()))


def literal(value):
    if isinstance(value, torch.fx.Node):
        return value.name
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return repr(value)


def op_name(target):
    return str(target) if isinstance(target, torch._ops.OpOverload) else "operator.getitem"


def short_form(graph, placeholders=None):
    lines, parameters = [], []
    for node in graph.nodes:
        kind = type_text(node.meta.get("val"))
        annotation = f': "{kind}"' if kind else ""
        if node.op == "placeholder":
            parameters.append(node.name + annotation)
        elif node.op == "call_function":
            args = [literal(a) for a in node.args] + [f"{k} = {literal(v)}" for k, v in node.kwargs.items()]
            if op_name(node.target) == "operator.getitem":
                lines.append(f"    {node.name}{annotation} = {args[0]}[{args[1]}]")
            elif node.target in (torch.ops.aten._assert_tensor_metadata.default,):
                continue
            else:
                lines.append(f"    {node.name}{annotation} = {op_name(node.target)}({', '.join(args)})")
        elif node.op == "get_attr":
            lines.append(f"    {node.name}{annotation} = self.{node.target}")
        elif node.op == "output":
            values = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
            lines.append("    return (" + ", ".join(literal(v) for v in values) + ",)")
        else:
            raise NotImplementedError(node.op)
    return "def forward(" + ", ".join(parameters) + "):\n" + "\n".join(lines) + "\n"


class Wrapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def record(name, function, arguments):
    """`arguments`: (name, tensor) pairs; those that require a gradient are differentiated."""
    tensors = [tensor for _, tensor in arguments]
    detached = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]
    program = torch.export.export(Wrapped(function), tuple(t.detach().clone() for t in detached))
    forward = program.graph_module.graph
    nodes = [node for node in forward.nodes if node.op == "placeholder"]
    for node, (wanted, _) in zip(nodes, arguments):
        node.name = wanted
        node.meta["val"] = node.meta["val"]

    captured = []

    def capture(module, joint_inputs, **options):
        captured.append(short_form(module.graph))
        return default_partition(module, joint_inputs, **options)

    compiled = aot_function(function, fw_compiler=lambda module, _: module, partition_fn=capture,
                            decompositions=select_decomp_table(), keep_inference_input_mutations=True)
    compiled(*detached)
    assert len(captured) == 1, "the function is differentiated once"
    gradients = ", ".join(key for key, tensor in arguments if tensor.requires_grad)
    ranges = ", ".join(f"{key} {RANGES[tensor]}" for key, tensor in arguments if tensor in RANGES)
    text = f"# case: {name}\n# gradients: {gradients}\n" + (f"# ranges: {ranges}\n" if ranges else "")
    text += f"{short_form(forward)}# joint\n{captured[0]}"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases", "joint", name + ".txt")
    with open(path, "w") as file:
        file.write(text)


# Arguments whose values must lie in a range: tensor -> "low high" (floats in between, integers below high). Others are
# normal.
RANGES = {}


def within(tensor, low, high):
    RANGES[tensor] = f"{low} {high}"
    return tensor


def g(*sizes, dtype=torch.float64):
    """A tensor to differentiate."""
    return torch.randn(*sizes, dtype=dtype).requires_grad_()


def c(*sizes, dtype=torch.float64):
    return torch.randn(*sizes, dtype=dtype)


def positive(*sizes):
    return within((torch.rand(*sizes, dtype=torch.float64) + 0.5).requires_grad_(), 0.5, 1.5)


def probability(*sizes):
    return within(torch.rand(*sizes, dtype=torch.float64), 0, 1)


def variance(size):
    return within(torch.ones(size, dtype=torch.float64), 0.5, 1.5)


def index(limit, *sizes, low=0):
    return within(torch.randint(low, limit, sizes), low, limit)


def mutate(x, buf):
    buf.add_(1)
    return x * buf


def attention(x, wq, wk, wv):
    def heads(t):
        return t.view(2, 4, 2, 3).transpose(1, 2)
    q, k, v = heads(F.linear(x, wq)), heads(F.linear(x, wk)), heads(F.linear(x, wv))
    scores = torch.softmax(q @ k.transpose(-2, -1) / 3 ** 0.5, dim=-1)
    return (scores @ v).transpose(1, 2).reshape(2, 4, 6)


def unrolled(x, w):
    h = x
    for _ in range(3):
        h = torch.tanh(h @ w) + x
    return h


def inplace(x, y):
    z = x * 2
    z[1:].mul_(y)
    return z.relu_() + x


def split_some(x):
    a, b, _ = x.split(2, 1)
    return a * b


CASES = {
    "mlp": (lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1, b1)), w2, b2),
            dict(x=g(8, 16), w1=g(32, 16), b1=g(32), w2=g(4, 32), b2=g(4))),
    "mlp_frozen_input": (lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1, b1)), w2, b2),
                         dict(x=c(8, 16), w1=g(32, 16), b1=g(32), w2=g(4, 32), b2=g(4))),
    "linear_3d": (lambda x, w, b: F.linear(x, w, b), dict(x=g(2, 3, 4), w=g(5, 4), b=g(5))),
    "linear_plain": (lambda x, w: F.linear(x, w), dict(x=g(3, 4), w=g(5, 4))),
    "mul_broadcast": (lambda x, y: x * y, dict(x=g(2, 1, 3), y=g(4, 1))),
    "add_alpha": (lambda x, y: torch.add(x, y, alpha=2), dict(x=g(2, 3), y=g(3))),
    "sub_scalar_tensor": (lambda x, y: 2 - x - y, dict(x=g(2, 3), y=g(()))),
    "div": (lambda x, y: x / y, dict(x=g(2, 3), y=positive(3))),
    "same_twice": (lambda x: x * x, dict(x=g(2, 3))),
    "three_uses": (lambda x: x.sin() + x.cos() * x, dict(x=g(2, 3))),
    "unrolled": (unrolled, dict(x=g(3, 3), w=g(3, 3))),
    "two_outputs": (lambda x, y: (x * y, (x * y).sum()), dict(x=g(2, 3), y=g(2, 3))),
    "chained_outputs": (lambda x: (x.sin(), x.sin().exp()), dict(x=g(2, 3))),
    "integer_output": (lambda x: (x.exp(), x.argmax(1)), dict(x=g(2, 3))),
    "detached": (lambda x, y: (x * y.detach(), y), dict(x=g(2, 3), y=g(2, 3))),
    "unreached": (lambda x, y, z: x.exp() + z, dict(x=g(2, 3), y=g(2), z=c(3))),
    "mutate_buffer": (mutate, dict(x=g(3), buf=c(3))),
    "inplace_view": (inplace, dict(x=g(3, 2), y=g(2))),
    "mixed_dtypes": (lambda x, y: x * y + x, dict(x=g(2, 3, dtype=torch.bfloat16), y=g(3, dtype=torch.float32))),
    "cast": (lambda x, y: x.to(torch.float64) * y, dict(x=g(2, 3, dtype=torch.float32), y=g(2, 3))),
    "unary_chain": (lambda x: x.exp().log().sqrt().rsqrt().reciprocal().neg().abs(), dict(x=positive(2, 3))),
    "trigonometry": (lambda x: x.sin() * x.cos() * x.tan() * x.atan() * x.sinh() * x.cosh(), dict(x=g(2, 3))),
    "pow": (lambda x: x ** 3 + x ** 2 + x ** 1 + x.square() + x ** 0.5, dict(x=positive(2, 3))),
    "pow_tensor": (lambda x, y: x ** y + 2 ** y, dict(x=positive(2, 3), y=g(3))),
    "tanh_sigmoid": (lambda x: x.tanh() * x.sigmoid(), dict(x=g(2, 3))),
    "gelu": (lambda x: F.gelu(x), dict(x=g(2, 3))),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), dict(x=g(2, 3))),
    "silu": (lambda x: F.silu(x), dict(x=g(2, 3))),
    "mish": (lambda x: F.mish(x), dict(x=g(2, 3))),
    "hardswish": (lambda x: F.hardswish(x), dict(x=g(2, 3))),
    "hardsigmoid": (lambda x: F.hardsigmoid(x), dict(x=g(2, 3))),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.5) + F.relu6(x), dict(x=g(2, 3))),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), dict(x=g(2, 3))),
    "elu": (lambda x: F.elu(x, 0.7) + F.selu(x), dict(x=g(2, 3))),
    "softplus": (lambda x: F.softplus(x, 2.0), dict(x=g(2, 3))),
    "logsigmoid": (lambda x: F.logsigmoid(x), dict(x=g(2, 3))),
    "prelu": (lambda x, w: F.prelu(x, w), dict(x=g(2, 3, 4), w=g(3))),
    "glu": (lambda x: F.glu(x, 1), dict(x=g(2, 6))),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.1) + x.clamp(max=0.2) + x.clamp_min(0.3), dict(x=g(2, 3))),
    "minimum_maximum": (lambda x, y: torch.minimum(x, y) * torch.maximum(x, y), dict(x=g(2, 3), y=g(3))),
    "where": (lambda x, y, m: torch.where(m > 0, x, y), dict(x=g(2, 3), y=g(3), m=c(2, 3))),
    "masked_fill": (lambda x, m: x.masked_fill(m > 0, -1.5), dict(x=g(2, 3), m=c(2, 3))),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), dict(x=g(2, 3), y=g(2, 3))),
    "addcmul": (lambda x, a, b: torch.addcmul(x, a, b, value=0.5), dict(x=g(2, 3), a=g(2, 3), b=g(3))),
    "addcdiv": (lambda x, a, b: torch.addcdiv(x, a, b, value=0.5), dict(x=g(2, 3), a=g(2, 3), b=positive(3))),
    "atan2": (lambda x, y: torch.atan2(x, y), dict(x=g(2, 3), y=g(2, 3))),
    "logaddexp": (lambda x, y: torch.logaddexp(x, y), dict(x=g(2, 3), y=g(2, 3))),
    "floor_step": (lambda x: x * x.floor() + x.sign(), dict(x=g(2, 3))),
    "sum_dims": (lambda x: x.sum(1).exp() + x.sum((0, 1), keepdim=True)[0], dict(x=g(2, 3, 4))),
    "sum_all": (lambda x: x.exp().sum(), dict(x=g(2, 3))),
    "mean_dims": (lambda x: x.mean((0, 2)).exp() + x.mean(), dict(x=g(2, 3, 4))),
    "var_std": (lambda x: x.var(1) + x.std(1, unbiased=False), dict(x=g(2, 5))),
    "var_mean": (lambda x: torch.add(*torch.var_mean(x, 1, correction=0, keepdim=True)), dict(x=g(2, 5))),
    "amax": (lambda x: x.amax(1) * x.amin(1), dict(x=g(2, 5))),
    "max_dim": (lambda x: x.max(1)[0] * x.min(1, keepdim=True)[0].squeeze(1), dict(x=g(2, 5))),
    "max_all": (lambda x: x.max() * x.min(), dict(x=g(2, 5))),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), dict(x=g(2, 5))),
    "cumsum": (lambda x: x.cumsum(1), dict(x=g(2, 5))),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1) + x.norm(p=1, dim=1), dict(x=g(2, 5))),
    "prod": (lambda x: x.prod(), dict(x=positive(4))),
    "sort_topk": (lambda x: x.sort(1)[0][:, :2] * x.topk(2, 1)[0], dict(x=g(2, 5))),
    "softmax": (lambda x: torch.softmax(x, -1), dict(x=g(2, 5))),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), dict(x=g(2, 5))),
    "layer_norm_permuted": (lambda x, w: F.layer_norm(x.permute(0, 2, 1), (3,)) @ w, dict(x=g(2, 3, 4), w=g(3, 2))),
    "group_norm_permuted": (lambda x, w, b: F.group_norm(x, 2, w, b).permute(0, 2, 1).exp(), dict(x=g(2, 4, 3), w=g(4), b=g(4))),
    "softmax_bf16": (lambda x: torch.softmax(x, -1), dict(x=g(2, 5, dtype=torch.bfloat16))),
    "log_softmax_bf16": (lambda x: torch.log_softmax(x, 1), dict(x=g(2, 5, dtype=torch.bfloat16))),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), dict(x=g(4, 5), t=index(5, 4))),
    "mse_loss": (lambda x, t: F.mse_loss(x, t), dict(x=g(4, 5), t=c(4, 5))),
    "l1_loss": (lambda x, t: F.l1_loss(x, t), dict(x=g(4, 5), t=c(4, 5))),
    "smooth_l1_loss": (lambda x, t: F.smooth_l1_loss(x, t), dict(x=g(4, 5), t=c(4, 5))),
    "huber_loss": (lambda x, t: F.huber_loss(x, t, delta=0.7), dict(x=g(4, 5), t=c(4, 5))),
    "bce_logits": (lambda x, t: F.binary_cross_entropy_with_logits(x, t), dict(x=g(4, 5), t=probability(4, 5))),
    "bce": (lambda x, t: F.binary_cross_entropy(x.sigmoid(), t), dict(x=g(4, 5), t=probability(4, 5))),
    "kl_div": (lambda x, t: F.kl_div(x, t, reduction="batchmean"), dict(x=g(4, 5), t=probability(4, 5))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), dict(x=g(2, 3, 5), w=g(5), b=g(5))),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (3, 5)), dict(x=g(2, 3, 5))),
    "layer_norm_bf16": (lambda x, w, b: F.layer_norm(x, (5,), w, b),
                        dict(x=g(3, 5, dtype=torch.bfloat16), w=g(5, dtype=torch.bfloat16), b=g(5, dtype=torch.bfloat16))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w, 1e-5), dict(x=g(2, 5), w=g(5))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), dict(x=g(2, 4, 3), w=g(4), b=g(4))),
    "batch_norm": (lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, training=True),
                   dict(x=g(2, 3, 4, 4), w=g(3), b=g(3), m=c(3), v=variance(3))),
    "batch_norm_eval": (lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b),
                        dict(x=g(2, 3, 4, 4), w=g(3), b=g(3), m=c(3), v=variance(3))),
    "dropout": (lambda x: F.dropout(x.sin(), 0.25) * x, dict(x=g(4, 5))),
    "embedding": (lambda i, w: F.embedding(i, w), dict(i=index(7, 2, 3), w=g(7, 4))),
    "embedding_padding": (lambda i, w: F.embedding(i, w, padding_idx=1).sin(), dict(i=index(7, 2, 3, low=2), w=g(7, 4))),
    "matmul": (lambda x, y: x @ y, dict(x=g(3, 4), y=g(4, 5))),
    "matmul_transposed": (lambda x, y: x.t() @ y.t(), dict(x=g(4, 3), y=g(5, 4))),
    "matmul_vector": (lambda x, y: (x @ y) * (y @ x.t()), dict(x=g(3, 4), y=g(4))),
    "matmul_batched": (lambda x, y: x @ y, dict(x=g(2, 3, 4), y=g(4, 5))),
    "bmm": (lambda x, y: torch.bmm(x, y), dict(x=g(2, 3, 4), y=g(2, 4, 5))),
    "addmm": (lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), dict(b=g(5), x=g(3, 4), y=g(4, 5))),
    "baddbmm": (lambda b, x, y: torch.baddbmm(b, x, y, alpha=2), dict(b=g(2, 3, 5), x=g(2, 3, 4), y=g(2, 4, 5))),
    "einsum": (lambda x, y: torch.einsum("bij,bjk->bik", x, y), dict(x=g(2, 3, 4), y=g(2, 4, 5))),
    "attention": (attention, dict(x=g(2, 4, 6), wq=g(6, 6), wk=g(6, 6), wv=g(6, 6))),
    "sdpa": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), dict(q=g(2, 2, 4, 8, dtype=torch.float32), k=g(2, 2, 4, 8, dtype=torch.float32),
                                                                                    v=g(2, 2, 4, 8, dtype=torch.float32))),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), dict(x=g(2, 3, 6, 6), w=g(4, 3, 3, 3), b=g(4))),
    "convolution_input": (lambda x, w: F.conv2d(x, w).relu(), dict(x=c(2, 3, 6, 6), w=g(4, 3, 3, 3))),
    "convolution_1d": (lambda x, w, b: F.conv1d(x, w, b), dict(x=g(2, 3, 6), w=g(4, 3, 3), b=g(4))),
    "conv_bn_relu": (lambda x, w, gamma, beta, m, v: F.batch_norm(F.conv2d(x, w), m, v, gamma, beta, training=True).relu(),
                     dict(x=g(2, 3, 6, 6), w=g(4, 3, 3, 3), gamma=g(4), beta=g(4), m=c(4), v=variance(4))),
    "max_pool": (lambda x: F.max_pool2d(x.relu(), 2), dict(x=g(2, 3, 4, 4))),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), dict(x=g(2, 3, 4, 4))),
    "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), dict(x=g(2, 3, 4, 4))),
    "adaptive_avg_pool_kernel": (lambda x: F.adaptive_avg_pool2d(x, 3), dict(x=g(2, 3, 4, 4))),
    "upsample_nearest": (lambda x: F.interpolate(x, scale_factor=2), dict(x=g(1, 2, 3, 3))),
    "upsample_bilinear": (lambda x: F.interpolate(x, size=(5, 6), mode="bilinear"), dict(x=g(1, 2, 3, 3))),
    "view_permute": (lambda x: x.view(2, 6).t().reshape(3, 4).permute(1, 0).contiguous() * 2, dict(x=g(3, 4))),
    "transposed_output": (lambda x: x.exp().transpose(0, 1), dict(x=g(3, 4))),
    "expand": (lambda x, y: x.expand(2, 3, 4) * y.unsqueeze(0).expand_as(x.expand(2, 3, 4)), dict(x=g(3, 1), y=g(3, 4))),
    "squeeze": (lambda x: x.squeeze(1).unsqueeze(0).squeeze().exp(), dict(x=g(3, 1, 4))),
    "select_slice": (lambda x: x[:, 1] * x[:, 1:3, 0:6:2].sum(1)[:, :1], dict(x=g(2, 4, 6))),
    "split_some": (split_some, dict(x=g(2, 5))),
    "chunk_unbind": (lambda x: torch.stack([a * 2 for a in x.unbind(1)] + [b.sum(1) for b in x.chunk(2, 1)]), dict(x=g(2, 4))),
    "cat": (lambda x, y, z: torch.cat([x, y, x.sin(), z], 1), dict(x=g(2, 3), y=g(2, 1), z=c(2, 2))),
    "stack": (lambda x, y: torch.stack([x, y], 1), dict(x=g(2, 3), y=g(2, 3))),
    "repeat": (lambda x: x.repeat(2, 3), dict(x=g(2, 3))),
    "flip_roll": (lambda x: x.flip(1) * x.roll(1, 1), dict(x=g(2, 3))),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=1.0), dict(x=g(2, 3))),
    "pad_reflect": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), dict(x=g(1, 2, 4, 4))),
    "tril_triu": (lambda x: x.tril() * 2 + x.triu(1), dict(x=g(3, 3))),
    "diagonal": (lambda x: x.diagonal() * 2, dict(x=g(3, 4))),
    "unfold": (lambda x: x.unfold(0, 3, 2).exp(), dict(x=g(7))),
    "index": (lambda x, i: x[i].exp(), dict(x=g(5, 3), i=index(5, 4))),
    "index_select": (lambda x, i: x.index_select(0, i), dict(x=g(5, 3), i=index(5, 4))),
    "index_put": (lambda x, i, v: x.index_put((i,), v, accumulate=True), dict(x=g(5, 3), i=index(5, 4), v=g(4, 3))),
    "index_add": (lambda x, i, v: x.index_add(0, i, v), dict(x=g(5, 3), i=index(5, 4), v=g(4, 3))),
    "gather": (lambda x, i: x.gather(1, i), dict(x=g(3, 5), i=index(5, 3, 2))),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), dict(x=g(3, 5), i=index(5, 3, 1), v=g(3, 1))),
    "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), dict(x=g(3, 5), i=index(3, 4, 5), v=g(4, 5))),
    "scatter_reduce": (lambda x, i, v: x.scatter_reduce(0, i, v, "amax"), dict(x=g(3, 5), i=index(3, 4, 5), v=g(4, 5))),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), dict(x=g(3, 5), y=g(5))),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 0, 1, 3), dict(x=g(3, 5), y=g(2, 5))),
    "as_strided": (lambda x: x.as_strided((2, 2), (3, 1)) * 2, dict(x=g(2, 3))),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), dict(x=g(1, 4, 2, 2))),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y), dict(x=g(2, 3), y=g(2, 3))),
    "remainder": (lambda x: x % 0.7 + torch.fmod(x, 0.6), dict(x=g(2, 3))),
    "special": (lambda x: torch.erf(x) + torch.expm1(x) + torch.log1p(x) + torch.exp2(x), dict(x=positive(2, 3))),
    "inverse_trig": (lambda x: torch.asin(x - 1) + torch.acos(x - 1) + torch.asinh(x) + torch.erfinv(x - 1), dict(x=positive(2, 3))),
}


def main():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    failed = []
    for name, (function, arguments) in CASES.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        try:
            record(name, function, list(arguments.items()))
        except Exception as error:  # a case that PyTorch itself does not take is reported, not recorded
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    print("\n".join(failed) or "all recorded")


if __name__ == "__main__":
    main()
