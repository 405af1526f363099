#!/usr/bin/env python3
"""Times eight models of real size on an NVIDIA GPU against torch.compile in one run, and compares results with f64.

  bench_gpu.py CLI [--only NAME,NAME] [--dtypes f32,bf16] [--rounds 3] [--repeat 30] [--tf32] [--keep DIR] [--compiled-only]

Needs PyTorch with CUDA, torchvision and the scripts beside it, which neither the product nor its tests do. Weights are random. A round times each of:
ours, torch.compile(mode="reduce-overhead"), torch.compile, eager; printed are medians of the rounds' medians in ms (CUDA events
on both sides), the time of the rival with CUDA graphs by ours, seconds from nothing to the first result of either with empty
caches, and the largest difference from PyTorch in f64 on the CPU as a share of the largest magnitude, for ours, eager and
torch.compile. TF32 is off on both sides unless asked for.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from bench_models import Recommender

warnings.filterwarnings("ignore")


class Block(torch.nn.Module):
    """A transformer block; `causal` as a decoder has it."""

    def __init__(self, width, heads, causal=False, activation="gelu"):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.activation = torch.nn.GELU(approximate="tanh" if activation == "tanh" else "none")

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, w))
        return x + self.down(self.activation(self.up(self.between(x))))


class Text(torch.nn.Module):
    def __init__(self, layers, width, heads, causal, head):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(30522, width), torch.nn.Embedding(1024, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, causal, "tanh" if causal else "gelu") for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, 30522, bias=False) if head else torch.nn.Identity()

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Vit(torch.nn.Module):
    def __init__(self, layers=12, width=384, heads=6):
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, 16, 16)
        self.first = torch.nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = torch.nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 1000)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Llama(torch.nn.Module):
    """Grouped heads of keys, rotated positions, gated perceptrons, norms by the root of the mean square."""

    class Layer(torch.nn.Module):
        def __init__(self, width, heads, groups):
            super().__init__()
            self.heads, self.groups, self.size = heads, groups, width // heads
            self.norm1, self.norm2 = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)
            self.q = torch.nn.Linear(width, width, bias=False)
            self.kv = torch.nn.Linear(width, 2 * groups * self.size, bias=False)
            self.o = torch.nn.Linear(width, width, bias=False)
            self.gate = torch.nn.Linear(width, 11 * width // 4, bias=False)
            self.up = torch.nn.Linear(width, 11 * width // 4, bias=False)
            self.down = torch.nn.Linear(11 * width // 4, width, bias=False)

        def forward(self, x, cos, sin):
            b, n, w = x.shape
            y = self.norm1(x)
            q = self.q(y).view(b, n, self.heads, self.size).transpose(1, 2)
            k, v = self.kv(y).view(b, n, 2, self.groups, self.size).permute(2, 0, 3, 1, 4)

            def turned(t):
                low, high = t.chunk(2, -1)
                return t * cos + torch.cat([-high, low], -1) * sin

            y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, n, w))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self, layers=8, width=1024, heads=16, groups=4):
        super().__init__()
        self.words = torch.nn.Embedding(32000, width)
        self.layers = torch.nn.ModuleList(self.Layer(width, heads, groups) for _ in range(layers))
        self.norm, self.head = torch.nn.RMSNorm(width), torch.nn.Linear(width, 32000, bias=False)
        self.size = width // heads

    def forward(self, ids):
        x = self.words(ids)
        places = torch.arange(ids.shape[1], device=ids.device, dtype=torch.float32)
        steps = 10000 ** (-torch.arange(0, self.size, 2, device=ids.device, dtype=torch.float32) / self.size)
        angles = torch.outer(places, steps).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


class Speech(torch.nn.Module):
    """Two strided convolutions over frames, then an encoder."""

    def __init__(self, layers=6, width=512, heads=8):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv1d(80, width, 3, padding=1), torch.nn.Conv1d(width, width, 3, 2, padding=1)
        self.places = torch.nn.Parameter(torch.randn(1, 1500, width) * 0.02)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, frames):
        x = F.gelu(self.conv2(F.gelu(self.conv1(frames)))).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def vision(name):
    import torchvision
    model = getattr(torchvision.models, name)()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return model, (torch.randn(8, 3, 224, 224),)


def words(batch, length, most=30000):
    return (torch.randint(0, most, (batch, length)),)


MODELS = {
    "resnet50": lambda: vision("resnet50"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "bert_base": lambda: (Text(12, 768, 12, False, False), words(8, 128)),
    "gpt2": lambda: (Text(12, 768, 12, True, True), words(4, 512)),
    "vit_small": lambda: (Vit(), (torch.randn(8, 3, 224, 224),)),
    "llama_8": lambda: (Llama(), words(2, 512)),
    "speech": lambda: (Speech(), (torch.randn(2, 80, 3000),)),
    "recommender": lambda: (Recommender(), (torch.randn(256, 13), torch.randint(0, 20000, (27, 1024)),
                                            torch.arange(0, 1024, 4).expand(27, 256).contiguous())),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def cast(value, dtype):
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


def timed(body, repeat):
    """The median of `repeat` runs in ms."""
    for _ in range(3):
        body()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        body()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def command_of(options, folder, *more):
    """Our command for the model; both sides round convolutions to TF32, or neither."""
    return [options.cli, "run", folder / "model.pt2", "--inputs", folder / "inputs.safetensors", "--backend", "cuda", "--device", "cuda",
            "--tf32", "conv" if options.tf32 else "none", "--cache", folder / "cache.db", *more]


def ours(options, folder, *more):
    command = command_of(options, folder, "--repeat", options.repeat, "--json", "-", *more)
    begin = time.perf_counter()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr.strip()[:400])
    return json.loads(done.stdout), time.perf_counter() - begin


def row(name, dtype, options, folder):
    torch.manual_seed(0)
    model, args = MODELS[name]()
    model.eval()
    with torch.no_grad():
        wide = model.double()(*[cast(a, torch.float64) for a in args])
    model, args = model.to(DTYPES[dtype]), tuple(cast(a, DTYPES[dtype]) for a in args)
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(torch.export.export(model, args, strict=False), folder / "model.pt2")
    save_file({f"input_{i}": a.clone().contiguous() for i, a in enumerate(args)}, folder / "inputs.safetensors")
    save_file({"output_0": wide.to(DTYPES[dtype]).contiguous()}, folder / "expect.safetensors")
    scale = float(wide.abs().max())
    report, first = ours(options, folder, "--expect", folder / "expect.safetensors")
    calls = subprocess.run([str(c) for c in command_of(options, folder, "--calls")], capture_output=True, text=True).stdout
    (folder / "calls.txt").write_text(calls)
    hosts = re.findall(r"reference: \S+", calls)
    error = float(report["outputs"][0].get("max_abs_error") or 0) / scale
    model, args = model.cuda(), tuple(a.cuda() for a in args)
    line = {"name": name, "dtype": dtype, "ours": [], "graphs": [], "compiled": [], "eager": [], "first": first, "hosts": hosts}
    with torch.no_grad():
        difference = lambda out: float((out.double().cpu() - wide).abs().max()) / scale
        line["errors"] = [error, difference(model(*args))]
        begin = time.perf_counter()
        graphs = torch.compile(model, mode="reduce-overhead")
        line["errors"].append(difference(graphs(*args)))
        line["rival_first"] = time.perf_counter() - begin
        rivals = {"graphs": graphs, "eager": model}
        if not options.fast:
            torch._dynamo.reset()
            rivals["compiled"] = torch.compile(model)
            rivals["compiled"](*args)
        for _ in range(options.rounds):
            line["ours"].append(ours(options, folder)[0]["median_ms"])
            for kind, run in rivals.items():
                line[kind].append(timed(lambda: run(*args), options.repeat))
    for kind in ("ours", "graphs", "compiled", "eager"):
        line[kind] = statistics.median(line[kind]) if line[kind] else math.nan
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    return line


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cli")
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--tf32", action="store_true", help="of convolutions, which is the default of both sides")
    parser.add_argument("--fast", action="store_true", help="without torch.compile's default mode")
    parser.add_argument("--keep")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = options.tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    print(f"{'model':<16}{'dtype':<6}{'ours':>9}{'graphs':>9}{'compile':>9}{'eager':>9}{'ratio':>7}{'first':>7}{'rival':>7}"
          "   error of ours, eager, torch.compile", flush=True)
    ratios = []
    for name in options.only.split(","):
        for dtype in options.dtypes.split(","):
            try:
                r = row(name, dtype, options, folder / f"{name}_{dtype}")
            except Exception as error:
                print(f"{name:<16}{dtype:<6}{type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            ratios.append(r["graphs"] / r["ours"])
            print(f"{name:<16}{dtype:<6}{r['ours']:9.3f}{r['graphs']:9.3f}{r['compiled']:9.3f}{r['eager']:9.3f}{ratios[-1]:7.2f}"
                  f"{r['first']:7.1f}{r['rival_first']:7.1f}   {r['errors'][0]:.1e} {r['errors'][1]:.1e} {r['errors'][2]:.1e}"
                  f"{'   on the host: ' + ', '.join(sorted(set(r['hosts']))) if r['hosts'] else ''}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
