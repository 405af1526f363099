"""Makes real torch.compile runs and opens every graph that they leave behind.

    python record_compile_runs.py list
    python record_compile_runs.py record FOLDER [--only NAME...]              each run in a process of its own
    python record_compile_runs.py check FOLDER CUTAWAY_CLI [--only NAME...] [--json REPORT]

A run leaves FOLDER/NAME/debug (TORCH_COMPILE_DEBUG), FOLDER/NAME/trace (TORCH_TRACE) and FOLDER/NAME/log.txt (TORCH_LOGS);
an export leaves FOLDER/NAME/*.pt2 with inputs and expected outputs. `check` lists the graphs of each with `info`, prints each
with `text`, reads that text back and prints it again, compiles it from its own stage on, and gives a table.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

LOGS = "graph_code,aot_graphs,aot_joint_graph,pre_grad_graphs,post_grad_graphs,dynamo"
RUNS = {}
EXPORTS = {}


def run(function):
    RUNS[function.__name__] = function
    return function


def exported(function):
    EXPORTS[function.__name__] = function
    return function


def train(model, *batches, loss=lambda out: out.sum(), **options):
    import torch
    compiled = torch.compile(model, **options)
    for batch in batches:
        batch = batch if isinstance(batch, tuple) else (batch,)
        loss(compiled(*batch)).backward()


def infer(model, *batches, **options):
    import torch
    compiled = torch.compile(model, **options)
    with torch.no_grad():
        for batch in batches:
            compiled(*(batch if isinstance(batch, tuple) else (batch,)))


def mlp():
    from torch import nn
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def convolutional():
    from torch import nn
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2),
                         nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def transformers_model(name, **more):
    import transformers
    sys.path.insert(0, str(Path(__file__).parent))
    import try_architectures
    config = try_architectures.small_configuration(name)
    for key, value in more.items():
        setattr(config, key, value)
    return transformers.AutoModel.from_config(config, attn_implementation="sdpa")


def ids(*size):
    import torch
    return torch.randint(3, 90, size)


@run
def mlp_inference():
    import torch
    infer(mlp(), torch.randn(2, 8))


@run
def mlp_training():
    import torch
    train(mlp(), torch.randn(2, 8), torch.randn(2, 8))


@run
def mlp_dynamic_training():
    import torch
    train(mlp(), torch.randn(3, 8), torch.randn(7, 8), dynamic=True)


@run
def mlp_bf16_training():
    import torch
    train(mlp().bfloat16(), torch.randn(4, 8, dtype=torch.bfloat16), loss=lambda out: out.float().pow(2).mean())


@run
def autocast_around():
    import torch
    model = torch.compile(mlp())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).sum()
    loss.backward()


def mixed_precision():
    """Regions in lower precision, one in full precision inside."""
    import torch
    from torch import nn

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.a(x)
                with torch.autocast("cpu", enabled=False):
                    y = self.b(y.float())
                z = torch.softmax(self.c(y) @ x.t(), -1)
                z = torch.cat([z, x[:, :4]]) + torch.nn.functional.layer_norm(z, (4,)).sum()
            return z.float() + 1
    return Mixed()


@run
def autocast_inside():
    import torch
    train(mixed_precision(), torch.randn(4, 8))
    infer(mixed_precision(), torch.randn(4, 8))


@run
def graph_breaks():
    import torch

    def function(x):
        y = x.sin() * 2
        torch._dynamo.graph_break()
        if y.sum() > 0:
            y = y + 1
        else:
            y = y - 1
        print("between", file=sys.stderr)
        return torch.nn.functional.softmax(y, -1)
    train(function, torch.randn(3, 4, requires_grad=True))
    infer(function, torch.randn(3, 4), torch.randn(5, 4))


@run
def several_frames():
    import torch
    from torch import nn

    @torch._dynamo.disable
    def outside(x):
        return x + 1

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.lin(outside(x.relu())))

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block() for _ in range(3)])

        def forward(self, x):
            for block in self.blocks:
                x = x + block(x)
            return x.mean()
    train(Stack(), torch.randn(2, 8))


@run
def recompilations():
    import torch

    def function(x, flag, scale):
        y = x * scale if flag else x / scale
        return y.view(x.shape[0], -1, 2).sum(1)
    compiled = torch.compile(function)
    for size, flag, scale in [((4, 6), True, 2), ((4, 6), False, 2), ((5, 6), True, 3), ((7, 8), True, 4.0), ((9, 10), False, 0.5)]:
        compiled(torch.randn(size), flag, scale)
    compiled(torch.randn(4, 6, dtype=torch.float64), True, 2)
    compiled(torch.randn(6, 4).t(), True, 2)


@run
def mutation():
    import torch
    from torch import nn

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("cache", torch.zeros(4, 8))
            self.lin = nn.Linear(8, 8)

        def forward(self, x, out):
            self.count += 1
            self.cache[1:3] = x[:2]
            self.cache.index_copy_(0, torch.tensor([0]), x[:1])
            out.copy_(self.lin(x))
            out[:, 0].mul_(2)
            y = out.transpose(0, 1)
            y.add_(1)
            return self.cache.sum() + y.mean() * self.count
    infer(Counter(), (torch.randn(3, 8), torch.zeros(3, 8)))
    train(Counter(), (torch.randn(3, 8), torch.zeros(3, 8)))


@run
def dropout():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.drop, self.channels, self.alpha = nn.Linear(8, 8), nn.Dropout(0.3), nn.Dropout1d(0.2), nn.AlphaDropout(0.1)

        def forward(self, x):
            y = self.drop(self.lin(x))
            y = F.dropout(y, 0.5, inplace=True)
            return self.alpha(self.channels(y[:, None])[:, 0]) + torch.rand_like(y) + torch.bernoulli(torch.sigmoid(y))
    train(Dropping(), torch.randn(4, 8))


@run
def no_grad_inside():
    import torch
    from torch import nn

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            with torch.no_grad():
                y = self.a(x).relu()
            z = self.b(y)
            with torch.set_grad_enabled(False):
                z = z + self.a(z)
                with torch.enable_grad():
                    z = z * self.b(x)
            return z, z.detach() + 1
    train(Partly(), torch.randn(4, 8), loss=lambda out: out[0].sum())
    infer(Partly(), torch.randn(4, 8))


@run
def checkpoint():
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint as kept

    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = mlp(), nn.Linear(4, 8)

        def forward(self, x):
            y = kept(lambda t: self.b(torch.nn.functional.dropout(self.a(t), 0.2)), x, use_reentrant=False)
            return kept(self.a, y + x, use_reentrant=False)
    train(Blocks(), torch.randn(4, 8))


@run
def cond():
    import torch

    def function(x, w):
        y = torch.cond(x.sum() > 0, lambda t: t.sin() @ w, lambda t: (t @ w).cos(), (x,))
        return torch.cond(y.mean() > 1, lambda t: t + 1, lambda t: t.relu() * 2, (y,))
    infer(function, (torch.randn(3, 4), torch.randn(4, 4)))
    infer(function, (torch.randn(5, 4), torch.randn(4, 4)), dynamic=True)
    train(function, (torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)))


@run
def loops():
    import torch
    from torch._higher_order_ops import while_loop
    infer(lambda x: while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t.sin() + i), (torch.tensor(0), x)), torch.randn(5, 4))


@run
def scans():
    import torch
    from torch._higher_order_ops import scan
    from torch._higher_order_ops.map import map as mapped

    def function(x):
        last, all_ = scan(lambda c, t: (c + t, c * t), torch.zeros(4), x)
        return last, all_, mapped(lambda t, k: t * k + 1, all_, torch.tensor(2.0))
    infer(function, torch.randn(5, 4))
    infer(function, torch.randn(6, 4), dynamic=True)


@run
def convolutional_training():
    import torch
    train(convolutional().train(), torch.randn(2, 3, 12, 12), torch.randn(2, 3, 12, 12))


@run
def convolutional_dynamic():
    import torch
    infer(convolutional().eval(), torch.randn(2, 3, 12, 12), torch.randn(3, 3, 16, 18), dynamic=True)


@run
def recurrent():
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.gru = nn.Embedding(50, 8), nn.LSTM(8, 8, 2, batch_first=True), nn.GRU(8, 8)

        def forward(self, x):
            y, (h, c) = self.lstm(self.embed(x))
            return self.gru(y)[0][:, -1] + c[1] + h[0]
    torch._dynamo.config.allow_rnn = True
    train(Recurrent(), torch.randint(0, 50, (2, 5)))
    infer(Recurrent(), torch.randint(0, 50, (2, 5)))


@run
def encoder_layer():
    import torch
    from torch import nn
    layer = lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    train(layer(), (torch.randn(2, 6, 16), mask))
    infer(layer().eval(), torch.randn(2, 6, 16), torch.randn(3, 9, 16))


@run
def losses():
    import torch
    import torch.nn.functional as F

    def function(x, t, y):
        assert x.shape[0] == t.shape[0], "batch"
        torch._assert(x.dim() == 2, "two dims")
        a = F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=-1)
        b = F.smooth_l1_loss(x, y) + F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean")
        return a + b + F.binary_cross_entropy_with_logits(x, y.sigmoid()) + F.huber_loss(x, y)
    batch = lambda n: (torch.randn(n, 5, requires_grad=True), torch.randint(0, 5, (n,)), torch.randn(n, 5))
    train(function, batch(4), batch(6))


@run
def data_dependent():
    import torch
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True

    def function(x, n):
        k = n.item()
        torch._check(k >= 2)
        torch._check(k <= 10)
        y = x[: k].sum(0) + torch.ones(k, 4).mean(0)
        chosen = x[x[:, 0] > 0]
        torch._check(chosen.shape[0] < 100)
        torch._assert(chosen.shape[0] >= 0, "rows")
        return y + chosen.sum(0) * n.float().item(), torch.nonzero(x)
    infer(function, (torch.randn(12, 4), torch.tensor(3)))
    infer(function, (torch.randn(13, 4), torch.tensor(5)), dynamic=True)


@run
def shapes():
    import torch

    def function(x, y):
        b, n, c = x.shape
        m = max(n, y.shape[1]) + min(b, 2)
        half = x.size()[1] // 2
        z = torch.nn.functional.pad(x, (0, 0, 0, m - n))
        a = x.new_zeros(b, half, c) + x[:, :half].reshape(b, half, -1)
        s = torch.zeros(x.shape, dtype=x.dtype) + x.numel() / float(n)
        t = x.view(torch.Size([b, n * c])).expand(x.size()[:-1].numel() // n, -1)
        r = torch.arange(n, dtype=x.dtype)[None, :, None] * x.stride(0) ** 0.5
        return z, a, s, t, x + r, x.flatten(0, -2).unflatten(0, (b, n)), int(n * 0.5), -n % 3, y.repeat(b, 1)
    infer(function, (torch.randn(3, 6, 4), torch.randn(3, 5)), (torch.randn(5, 8, 4), torch.randn(5, 7)), dynamic=True)
    train(lambda x, y: function(x, y)[0].sum() + function(x, y)[4].sum(), (torch.randn(3, 6, 4, requires_grad=True), torch.randn(3, 5)), dynamic=True)


@run
def symbolic_functions():
    import torch

    def function(x):
        n = x.shape[0]
        low = torch.sym_min(n, 7)
        high = torch.sym_max(n, 3)
        ratio = torch.sym_float(n) / 3
        total = torch.sym_sum([n, low, high])
        root = torch._sym_sqrt(n) if hasattr(torch, "_sym_sqrt") else n
        flag = torch.sym_not(n > 100)
        return x * ratio + low + high + total + root + torch.sym_ite(flag, 1, 2), torch.full((int(torch.sym_int(ratio)), low), 1.0)
    infer(function, torch.randn(6, 4), torch.randn(9, 4), dynamic=True)


@run
def custom_operator():
    import torch

    @torch.library.custom_op("runs::scale_", mutates_args={"x"})
    def scale_(x: torch.Tensor, by: float) -> None:
        x.mul_(by)

    @torch.library.custom_op("runs::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    def function(x):
        y = x.sin()
        torch.ops.runs.scale_(y, 3.0)
        return torch.ops.runs.twice(y) + 1
    infer(function, torch.randn(3, 4))


@run
def own_derivative():
    import torch

    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= ctx.limit), None
    train(lambda x: Clip.apply(x * 2, 1.0).sin(), torch.randn(3, 4, requires_grad=True))


@run
def function_transforms():
    import torch

    def function(x, w):
        per = torch.func.vmap(lambda r: (r @ w).relu().sum())(x)
        slope = torch.func.grad(lambda v: (v @ w).sin().sum())(x)
        out, tangent = torch.func.jvp(lambda v: v.exp() @ w, (x,), (torch.ones_like(x),))
        return per, slope, out, tangent
    infer(function, (torch.randn(3, 4), torch.randn(4, 4)))


@run
def optimizer():
    import torch
    model = mlp()
    for make in (lambda p: torch.optim.AdamW(p, lr=1e-3), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)):
        steps = make(model.parameters())
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        step = torch.compile(steps.step)
        step(), step()


@run
def random_numbers():
    import torch

    def function(x):
        y = x + torch.rand(3, 4) + torch.randn_like(x) + torch.randint(0, 5, (3, 4))
        z = torch.empty(3, 4).uniform_(-1, 1) + torch.empty(4).normal_() + torch.zeros(3, 4).bernoulli_(0.3)
        return y + z, torch.randperm(4), torch.multinomial(x.abs(), 2)
    infer(function, torch.randn(3, 4))


@run
def strided_views():
    import torch

    def function(x):
        y = torch.as_strided(x, (2, 3), (4, 1), 1)
        z = x.unfold(1, 2, 1) + torch.diagonal(x)[:3, None].sum()
        a, b = x.tensor_split(2, dim=1)
        w = x.clone()
        w.diagonal().fill_(7)
        w[torch.tensor([0, 2])] += 1
        return y, z, a * b, w, torch.view_as_complex(x.reshape(4, 2, 2).contiguous()).abs(), {"k": x.T, "none": None}
    infer(function, torch.randn(4, 4))


@run
def fourier():
    import torch

    def function(x):
        f = torch.fft.rfft(x, dim=-1)
        return torch.fft.irfft(f * torch.ones_like(f), n=x.shape[-1]), f.abs(), torch.linalg.norm(x, dim=1), torch.einsum("ij,kj->ik", x, x)
    train(function, torch.randn(4, 8, requires_grad=True), loss=lambda out: sum(o.sum() for o in out))


@run
def flexible_attention():
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    def function(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")))
    make = lambda: torch.randn(1, 2, 32, 16)
    infer(function, (make(), make(), make()))


@run
def nested_region():
    import torch

    @torch.compiler.nested_compile_region
    def block(x, w):
        return torch.relu(x @ w) + x

    def function(x, w):
        return block(block(block(x, w), w), w).sum()
    train(function, (torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)), loss=lambda out: out)


@run
def attention_training():
    import torch
    import torch.nn.functional as F

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)

        def forward(self, x):
            b, n, c = x.size()
            q, k, v = self.qkv(x).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
            return self.out(y.transpose(1, 2).reshape(b, n, c))
    train(Attention(), torch.randn(2, 5, 16), torch.randn(3, 7, 16), dynamic=True)
    infer(Attention().eval().bfloat16(), torch.randn(2, 5, 16, dtype=torch.bfloat16))


@run
def gpt2_dynamic():
    infer(transformers_model("gpt2").eval(), ids(2, 7), ids(3, 11), dynamic=True)


@run
def gpt2_training():
    train(transformers_model("gpt2").train(), ids(2, 8), loss=lambda out: out[0].sum())


@run
def bert_training():
    train(transformers_model("bert").train(), ids(2, 8), ids(2, 12), loss=lambda out: out[0].sum())


@run
def llama_dynamic():
    infer(transformers_model("llama").eval(), ids(2, 7), ids(3, 11), ids(3, 13))


@run
def llama_bf16_training():
    import torch
    train(transformers_model("llama").bfloat16().train(), ids(2, 8), loss=lambda out: out[0].float().sum())


@run
def t5_inference():
    model = transformers_model("t5").eval()
    import torch
    compiled = torch.compile(model, dynamic=True)
    with torch.no_grad():
        for n in (7, 9):
            compiled(input_ids=ids(2, n), decoder_input_ids=ids(2, n - 2))


@run
def mixture_of_experts():
    infer(transformers_model("mixtral").eval(), ids(2, 7))


@run
def decoding():
    """A cache that is written to, as in generation."""
    import torch
    import transformers
    sys.path.insert(0, str(Path(__file__).parent))
    import try_architectures
    config = try_architectures.small_configuration("llama")
    config.use_cache = True
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    cache = transformers.StaticCache(config=config, max_cache_len=16)
    compiled = torch.compile(model)
    with torch.no_grad():
        compiled(ids(1, 4), past_key_values=cache, cache_position=torch.arange(4))
        compiled(ids(1, 1), past_key_values=cache, cache_position=torch.tensor([4]))


@run
def resnet_training():
    import timm
    import torch
    train(timm.create_model("resnet18", pretrained=False, num_classes=4, block_args=dict(reduce_first=4)).train(), torch.randn(2, 3, 32, 32))


@run
def vision_transformer():
    import timm
    import torch
    infer(timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, pretrained=False).eval(), torch.randn(2, 3, 32, 32), torch.randn(3, 3, 32, 32))


@run
def convnext_bf16():
    import timm
    import torch
    train(timm.create_model("convnext_atto", pretrained=False, depths=(1, 1, 1, 1), drop_path_rate=0.1).bfloat16().train(), torch.randn(2, 3, 64, 64, dtype=torch.bfloat16))


@run
def mobilenet():
    import torch
    import torchvision
    model = torchvision.models.mobilenet_v3_small(weights=None)
    infer(model.eval(), torch.randn(2, 3, 64, 64))
    train(torchvision.models.squeezenet1_1(weights=None).train(), torch.randn(2, 3, 64, 64))


@run
def segmentation_dynamic():
    import torch
    import torchvision
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
    infer(lambda x: model(x)["out"], torch.randn(1, 3, 64, 64), torch.randn(2, 3, 96, 64), dynamic=True)


# -- exported programs with parts that run in another mode

@exported
def grad_modes():
    import torch
    from torch import nn

    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.register_buffer("seen", torch.zeros(8))

        def forward(self, x):
            with torch.no_grad():
                y = self.a(x).relu()
                self.seen.add_(y.sum(0))
            z = self.b(y) * self.seen
            with torch.no_grad():
                z = z + self.a(z)
                with torch.enable_grad():
                    z = z * self.b(x)
            return z, z + 1
    return Partly(), (torch.randn(4, 8),)


@exported
def autocast_modes():
    import torch
    return mixed_precision(), (torch.randn(4, 8),)


@exported
def both_modes():
    import torch

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(8, 8)

        def forward(self, x):
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.lin(x)
                k = y.shape[1]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                with torch.no_grad():
                    z = self.lin(x)
                w = torch.mm(x, x.t())
            return (y + z).float() * k, w.float()
    return Both(), (torch.randn(4, 8),)


@exported
def hints():
    import torch
    from torch._higher_order_ops.hints_wrap import hints_wrapper

    class Hinted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(8, 8)

        def forward(self, x, y):
            def inner(a, b):
                return (torch.relu(a) + b.sin(),)
            return hints_wrapper(inner, (self.lin(x), y), {}, hints={"outer": True})[0] * 2
    return Hinted(), (torch.randn(4, 8), torch.randn(4, 8))


@exported
def checkpointed():
    import torch
    from torch.utils.checkpoint import checkpoint as kept

    class Kept(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = mlp(), torch.nn.Linear(4, 8)

        def forward(self, x):
            return kept(lambda t: self.b(self.a(t)), x, use_reentrant=False) + x
    return Kept(), (torch.randn(4, 8),)


@exported
def branches_in_modes():
    import torch

    class Branches(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
            return y * x
    return Branches(), (torch.randn(4, 8),)


# -- recording

def export_all(name, folder):
    import torch
    from safetensors.torch import save_file
    for variant, strict, decomposed in (("plain", False, False), ("strict", True, False), ("inference", False, True)):
        torch.manual_seed(0)
        try:
            model, inputs = EXPORTS[name]()
            program = torch.export.export(model, inputs, strict=strict)
            if decomposed:
                program = program.run_decompositions()
            torch.export.save(program, folder / f"{variant}.pt2")
            flat = [t for t in torch.utils._pytree.tree_leaves(inputs)]
            save_file({f"{i:04}": t for i, t in enumerate(flat)}, folder / "inputs.safetensors")
            with torch.no_grad():
                want = torch.utils._pytree.tree_leaves(model(*inputs))
            save_file({f"{i:04}": t.contiguous().clone() for i, t in enumerate(want)}, folder / "expected.safetensors")
        except Exception:
            (folder / f"{variant}.failed.txt").write_text(traceback.format_exc())
            print(f"{name} {variant} NOT EXPORTED {traceback.format_exc().splitlines()[-1][:200]}", flush=True)


def run_without_kernels():
    """Kernels are written but not compiled, which takes most of the time; the graph that they were made of runs in their place."""
    import types
    from torch._inductor.graph import GraphLowering

    def compile_to_module(self):
        self.codegen()
        self.cache_key = self.cache_path = ""
        self.cache_linemap = []
        graph = self.module

        def call(args):
            given = list(args)
            args.clear()
            return list(graph(*given))
        return types.SimpleNamespace(call=call)
    GraphLowering.compile_to_module = compile_to_module


def record_one(name, folder):
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if name in EXPORTS:
        return export_all(name, folder)
    import torch._inductor.config as inductor
    inductor.compile_threads = 1
    inductor.force_disable_caches = True
    if not os.environ.get("RUN_KERNELS"):
        run_without_kernels()
    RUNS[name]()
    return None


def record(arguments):
    folder = Path(arguments.folder).resolve()
    for name in [*RUNS, *EXPORTS]:
        if arguments.only and name not in arguments.only:
            continue
        here = folder / name
        if (here / "done").exists():
            continue
        here.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, OMP_NUM_THREADS="1", TORCH_LOGS_FORMAT="") if name in EXPORTS else dict(
            os.environ, OMP_NUM_THREADS="1", TORCH_COMPILE_DEBUG="1", TORCH_COMPILE_DEBUG_DIR=str(here / "debug"),
            TORCHINDUCTOR_VEC_ISA_OK="1", TORCH_TRACE=str(here / "trace"), TORCH_LOGS=LOGS, RUN_KERNELS="1" if arguments.kernels else "")
        start = time.time()
        with open(here / "log.txt", "w") as log:
            try:
                code = subprocess.run([sys.executable, __file__, "one", str(here), name], env=environment, cwd=here, stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, timeout=arguments.seconds).returncode
            except subprocess.TimeoutExpired:
                code = "timeout"
        if code == 0:
            (here / "done").touch()
        print(f"{name} {'' if code == 0 else f'STATUS {code} '}{time.time() - start:.1f} s", flush=True)


# -- checking

def call(arguments, command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=arguments.seconds, text=True, errors="replace")
        return done.returncode, done.stdout, done.stderr.strip()
    except subprocess.TimeoutExpired:
        return "timeout", "", "took too long"


def reason(text):
    """An error as a class: without names, numbers and places."""
    first = text.splitlines()[0] if text else "no message"
    return re.sub(r"\d+", "N", re.sub(r"^.*?error: ", "", first))[:160]


def check_graph(arguments, file, name, scratch):
    """What happened to one graph: a dict of what failed, each with the message."""
    cli, chosen = arguments.cli, ["--graph", name] if name else []
    row = {"file": str(file), "graph": name}
    code, text, error = call(arguments, [cli, "text", str(file), *chosen])
    if code != 0:
        row["text"] = (code, error)
        return row
    once = scratch / f"{abs(hash((str(file), name)))}.py"
    once.write_text(text)
    code, again, error = call(arguments, [cli, "text", str(once)])
    once.unlink()
    if code != 0 or again != text:
        row["round trip"] = (code, error or "the text differs")
    code, _, error = call(arguments, [cli, "compile", str(file), *chosen])
    if code != 0:
        row["compile"] = (code, error)
    return row


def check_export(arguments, folder, file):
    rows = []
    name = file.stem
    for what, command in (("compile", ["compile", str(file)]), ("training", ["compile", str(file), "--mode", "training"]), *(
            (f"run {backend}", ["run", str(file), "--backend", backend, "--inputs", str(folder / "inputs.safetensors"), "--expect",
                                str(folder / "expected.safetensors")]) for backend in ("reference", "cpu"))):
        code, _, error = call(arguments, [arguments.cli, *command])
        row = {"file": str(file), "graph": f"{name} {what}"}
        if code != 0:
            row["compile"] = (code, error)
        rows.append(row)
    return rows


def files_of(folder):
    for part in sorted(folder.glob("debug/torch_compile_debug")) or sorted(folder.glob("debug")):
        yield part
    yield from sorted(folder.glob("trace/*.log"))
    if (folder / "debug").exists() or (folder / "trace").exists():
        yield folder / "log.txt"


def graphs_of(arguments, file):
    """The graphs of a file, which `info` lists together with their bodies; [""] where there is one."""
    _, _, error = call(arguments, [arguments.cli, "text", str(file), "--graph", "?"])
    held = re.search(r"it holds: (.*)", error)
    return held[1].split(", ") if held and ", " in held[1] else [""]


def check(arguments):
    rows = []
    scratch = Path(tempfile.mkdtemp())
    pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
    for folder in sorted(Path(arguments.folder).iterdir()):
        if (arguments.only and folder.name not in arguments.only) or not folder.is_dir():
            continue
        jobs = [pool.submit(check_export, arguments, folder, file) for file in sorted(folder.glob("*.pt2"))]
        found = [row for job in jobs for row in job.result()]
        for file in files_of(folder):
            code, text, error = call(arguments, [arguments.cli, "info", str(file), "--json", "-"])
            if code != 0:
                found.append({"file": str(file), "graph": "", "open": (code, error)})
                continue
            facts = json.loads(text)
            found += [{"file": str(file), "graph": remark.split("'")[1], "open": (1, remark)} for remark in facts["remarks"] if "cannot be read" in remark]
            names = graphs_of(arguments, file)
            found += pool.map(lambda name: check_graph(arguments, file, name, scratch), names)
        for row in found:
            row["run"] = folder.name
            for what in ("open", "text", "round trip", "compile"):
                if what in row:
                    print(f"{folder.name} | {Path(row['file']).name} | {row['graph']} | {what} {row[what][0]}: {' | '.join(row[what][1].splitlines())[:arguments.width]}", flush=True)
        rows += found
    report(rows)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))
    return 0 if all(len(row) == 3 for row in rows) else 1


def report(rows):
    count = lambda *keys: sum(not any(key in row for key in keys) for row in rows)
    crashes = [row for row in rows for value in row.values() if isinstance(value, tuple) and value[0] not in (0, 1)]
    print(f"\ngraphs {len(rows)}, printed {count('open', 'text')}, round-trip {count('open', 'text', 'round trip')}, "
          f"compiled {count('open', 'text', 'compile')}, crashes {len(crashes)}")
    reasons = collections.Counter((what, reason(row[what][1])) for row in rows for what in ("open", "text", "round trip", "compile") if what in row)
    for (what, why), n in reasons.most_common():
        print(f"{n:5} {what:10} {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "record", "check", "one"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("cli", nargs="?")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--kernels", action="store_true", help="record: compile and run the kernels, too")
    arguments = parser.parse_args()
    if arguments.what == "list":
        print("\n".join([*RUNS, *EXPORTS]))
    elif arguments.what == "one":
        record_one(arguments.cli, Path(arguments.folder))
    elif arguments.what == "record":
        record(arguments)
    else:
        return check(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
