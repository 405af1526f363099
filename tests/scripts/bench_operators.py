#!/usr/bin/env python3
"""Times single operators at sizes of real use against torch.compile, interleaved in one run.

  bench_operators.py CLI [--only NAME,NAME] [--rounds 3] [--repeat 15] [--threads 2] [--below 0.8]

Needs PyTorch, which neither the product nor its tests do. A round times ours (`run --repeat`, warm), then torch.compile.
Printed are the medians of the rounds' medians in ms, and torch.compile's time by ours; at the end those below `--below`.
"""
import argparse
import json
import logging
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F

from bench_kernels import Module, median_of

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isfinite
isnan lgamma log log10 log1p log2 logit neg nan_to_num rad2deg reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinc sinh
sqrt square tan tanh trunc""".split()
ACTIVATIONS = """celu elu gelu hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish relu6 selu silu softmax softplus
softshrink softsign tanhshrink""".split()
BINARY = """add atan2 copysign div eq floor_divide fmax fmin fmod hypot logaddexp logaddexp2 lt maximum minimum mul nextafter pow
remainder sub xlogy""".split()
REDUCTIONS = """all any amax amin argmax argmin aminmax count_nonzero logsumexp mean norm prod std sum var nansum""".split()
SPECIAL = """bessel_j0 bessel_j1 entr erfcx i0e i1 i1e log_ndtr ndtri modified_bessel_i0""".split()


def operators():
    x = torch.randn(1024, 1024)
    positive = x.abs() / 5 + 0.01
    table = {}
    for name in UNARY:
        f = getattr(torch, name)
        domain = {"acosh": positive + 1}.get(name, positive.clamp(0.01, 0.99))
        table[name] = (lambda a, f=f: f(a), (domain if name in "acos asin atanh erfinv logit log acosh".split() else
                                             positive if name in "log10 log2 log1p sqrt rsqrt lgamma digamma".split() else x,))
    for name in ACTIVATIONS:
        f = getattr(F, name)
        extra = {"dim": -1} if "softmax" in name else {}
        table[name] = (lambda a, f=f, extra=extra: f(a, **extra), (x,))
    for name in BINARY:
        f = getattr(torch, name)
        table[name] = (lambda a, b, f=f: f(a, b), (positive, x.flip(0).contiguous()))
    for name in REDUCTIONS:
        f = getattr(torch, name)
        table[name] = (lambda a, f=f: f(a), (x,)) if name not in ("logsumexp",) else (lambda a: torch.logsumexp(a, -1), (x,))
        if name not in ("count_nonzero", "logsumexp", "norm", "aminmax", "nansum"):
            table[f"{name}_rows"] = (lambda a, f=f: f(a, -1), (x,))
            table[f"{name}_columns"] = (lambda a, f=f: f(a, 0), (x,))
    for name in SPECIAL:
        f = getattr(torch.special, name)
        table[f"special_{name}"] = (lambda a, f=f: f(a), (positive.clamp(0.01, 0.99)[:256].contiguous(),))
    table.update(orders(x))
    table.update(moves(x))
    table.update(layers())
    table.update(complexes())
    return table


def orders(x):
    rows = x[:256].contiguous()
    index = torch.randint(0, 1024, (1024, 256))
    return {
        "sort": (lambda a: torch.sort(a, -1), (rows,)),
        "argsort": (lambda a: torch.argsort(a, -1), (rows,)),
        "sort_i64": (lambda a: torch.sort(a, -1), (torch.randint(0, 1 << 40, (256, 1024)),)),
        "topk_10": (lambda a: torch.topk(a, 10), (rows.reshape(64, 4096),)),
        "topk_50": (lambda a: torch.topk(a, 50), (torch.randn(1, 50257),)),
        "topk_100": (lambda a: torch.topk(a, 100), (rows.reshape(64, 4096),)),
        "topk_1000": (lambda a: torch.topk(a, 1000), (rows.reshape(64, 4096),)),
        "topk_2_of_8": (lambda a: torch.topk(a, 2), (torch.randn(4096, 8),)),
        "topk_columns": (lambda a: torch.topk(a, 5, 0), (x,)),
        "kthvalue": (lambda a: torch.kthvalue(a, 50), (rows,)),
        "median": (lambda a: torch.median(a, -1), (rows,)),
        "mode": (lambda a: torch.mode(a, -1), (torch.randint(0, 100, (256, 1024)),)),
        "cumsum": (lambda a: torch.cumsum(a, -1), (x,)),
        "cumsum_columns": (lambda a: torch.cumsum(a, 0), (x,)),
        "cumprod": (lambda a: torch.cumprod(a, -1), (x,)),
        "cummax": (lambda a: torch.cummax(a, -1), (x,)),
        "logcumsumexp": (lambda a: torch.logcumsumexp(a, -1), (x,)),
        "gather": (lambda a, i: torch.gather(a, 1, i), (x, index)),
        "index_select": (lambda a, i: torch.index_select(a, 0, i), (x, index[0])),
        "index": (lambda a, i, j: a[i, j], (x, index, index.flip(0).contiguous())),
        "index_put": (lambda a, i, v: torch.index_put(a, (i,), v), (x, torch.randperm(1024)[:512], x[:512].contiguous())),
        "scatter": (lambda a, i, v: torch.scatter(a, 1, i, v), (x, index, torch.randn(1024, 256))),
        "scatter_add": (lambda a, i, v: torch.scatter_add(a, 1, i, v), (x, index, torch.randn(1024, 256))),
        "scatter_reduce": (lambda a, i, v: torch.scatter_reduce(a, 1, i, v, "amax"), (x, index, torch.randn(1024, 256))),
        "index_add": (lambda a, i, v: torch.index_add(a, 0, i, v), (x, torch.randint(0, 1024, (512,)), x[:512].contiguous())),
        "searchsorted": (lambda a, v: torch.searchsorted(a, v), (torch.sort(torch.randn(4096))[0], x[:256].contiguous())),
        "bucketize": (lambda a, v: torch.bucketize(v, a), (torch.sort(torch.randn(64))[0], x)),
        "histc": (lambda a: torch.histc(a, 100, -3, 3), (x,)),
        "embedding": (lambda i, w: F.embedding(i, w), (torch.randint(0, 30000, (64, 128)), torch.randn(30000, 256))),
        "embedding_bag": (lambda i, w: F.embedding_bag(i, w, mode="sum"), (torch.randint(0, 30000, (1024, 16)), torch.randn(30000, 64))),
        "one_hot": (lambda i: F.one_hot(i, 100), (torch.randint(0, 100, (4096,)),)),
        "masked_fill": (lambda a: torch.masked_fill(a, a > 0, 1.0), (x,)),
        "masked_scatter": (lambda a, s: torch.masked_scatter(a, a > 0, s), (x, x.flip(0).contiguous())),
        "where": (lambda a, b: torch.where(a > 0, a, b), (x, x.flip(0).contiguous())),
        "take_along_dim": (lambda a, i: torch.take_along_dim(a, i, 1), (x, index)),
    }


def moves(x):
    parts = tuple(torch.randn(128, 1024) for _ in range(8))
    wide = tuple(torch.randn(1024, 128) for _ in range(8))
    image = torch.randn(4, 64, 56, 56)
    return {
        "transpose": (lambda a: a.t().contiguous(), (x,)),
        "permute": (lambda a: a.permute(0, 2, 3, 1).contiguous(), (image,)),
        "cat_2": (lambda *a: torch.cat(a, 0), parts[:2]),
        "cat_8": (lambda *a: torch.cat(a, 0), parts),
        "cat_8_computed": (lambda *a: torch.cat([p.relu() for p in a], 0), parts),
        "cat_8_computed_columns": (lambda *a: torch.cat([p.exp() for p in a], 1), wide),
        "cat_6_slices": (lambda a: torch.cat([a[:, 100 * i:100 * i + 90] * (i + 1) for i in range(6)], 1), (x,)),
        "cat_channels": (lambda *a: torch.cat([F.relu(p) for p in a], 1), tuple(torch.randn(4, 32, 28, 28) for _ in range(8))),
        "stack_6": (lambda a: torch.stack([a * i for i in range(1, 7)], -1), (x[:256].contiguous(),)),
        "stack_6_front": (lambda a: torch.stack([a * i for i in range(1, 7)], 0), (x[:256].contiguous(),)),
        "flip": (lambda a: a.flip(-1), (x,)),
        "roll": (lambda a: a.roll((3, 5), (0, 1)), (x,)),
        "pad": (lambda a: F.pad(a, (1, 1, 1, 1)), (image,)),
        "pad_reflect": (lambda a: F.pad(a, (1, 1, 1, 1), mode="reflect"), (image,)),
        "pad_replicate": (lambda a: F.pad(a, (1, 1, 1, 1), mode="replicate"), (image,)),
        "repeat_interleave": (lambda a: a.repeat_interleave(3, 0), (x[:256].contiguous(),)),
        "tril": (lambda a: torch.tril(a), (x,)),
        "unfold": (lambda a: F.unfold(a, 3, padding=1), (image[:1].contiguous(),)),
        "fold": (lambda a: F.fold(a, (56, 56), 3, padding=1), (torch.randn(1, 576, 3136),)),
        "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), (image,)),
        "to_bf16": (lambda a: a.to(torch.bfloat16), (x,)),
        "to_i32": (lambda a: a.to(torch.int32), (x,)),
        "diagonal": (lambda a: a.diagonal().contiguous(), (x,)),
        "rot90": (lambda a: torch.rot90(a), (x,)),
        "meshgrid": (lambda a, b: torch.stack(torch.meshgrid(a, b, indexing="ij")), (x[0].contiguous(), x[1].contiguous())),
        "arange_mul": (lambda a: a * torch.arange(1024), (x,)),
    }


def layers():
    image = torch.randn(4, 64, 56, 56)
    a, b = torch.randn(256, 512), torch.randn(512, 512)
    q = torch.randn(2, 8, 256, 64)
    return {
        "adaptive_max_pool2d": (lambda t: F.adaptive_max_pool2d(t, 5), (image,)),
        "adaptive_max_pool2d_7": (lambda t: F.adaptive_max_pool2d(t, 7), (image,)),
        "adaptive_max_pool2d_1": (lambda t: F.adaptive_max_pool2d(t, 1), (image,)),
        "adaptive_max_pool2d_indices": (lambda t: F.adaptive_max_pool2d(t, 5, return_indices=True), (image,)),
        "adaptive_max_pool1d": (lambda t: F.adaptive_max_pool1d(t, 100), (torch.randn(16, 64, 1000),)),
        "adaptive_max_pool3d": (lambda t: F.adaptive_max_pool3d(t, 4), (torch.randn(2, 16, 16, 28, 28),)),
        "adaptive_avg_pool2d": (lambda t: F.adaptive_avg_pool2d(t, 5), (image,)),
        "adaptive_avg_pool2d_1": (lambda t: F.adaptive_avg_pool2d(t, 1), (image,)),
        "adaptive_avg_pool3d": (lambda t: F.adaptive_avg_pool3d(t, 4), (torch.randn(2, 16, 16, 28, 28),)),
        "max_pool2d": (lambda t: F.max_pool2d(t, 3, 2, 1), (image,)),
        "max_pool2d_indices": (lambda t: F.max_pool2d(t, 2, return_indices=True), (image,)),
        "max_pool3d": (lambda t: F.max_pool3d(t, 2), (torch.randn(2, 16, 16, 28, 28),)),
        "avg_pool2d": (lambda t: F.avg_pool2d(t, 3, 2, 1), (image,)),
        "lp_pool2d": (lambda t: F.lp_pool2d(t, 2.0, 2), (image,)),
        "upsample_nearest": (lambda t: F.interpolate(t, scale_factor=2), (image,)),
        "upsample_bilinear": (lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"), (image,)),
        "upsample_bicubic": (lambda t: F.interpolate(t, scale_factor=2, mode="bicubic"), (image[:, :16].contiguous(),)),
        "upsample_bilinear_aa": (lambda t: F.interpolate(t, size=(28, 28), mode="bilinear", antialias=True), (image,)),
        "grid_sample": (lambda t, g: F.grid_sample(t, g, align_corners=False), (image, torch.rand(4, 56, 56, 2) * 2 - 1)),
        "affine_grid": (lambda t: F.affine_grid(t, (4, 3, 224, 224), False), (torch.randn(4, 2, 3),)),
        "batch_norm": (lambda t, m, v: F.batch_norm(t, m, v), (image, torch.randn(64), torch.rand(64) + 0.5)),
        "instance_norm": (lambda t: F.instance_norm(t), (image,)),
        "group_norm": (lambda t: F.group_norm(t, 8), (image,)),
        "layer_norm": (lambda t: F.layer_norm(t, (512,)), (torch.randn(1024, 512),)),
        "rms_norm": (lambda t: F.rms_norm(t, (512,)), (torch.randn(1024, 512),)),
        "local_response_norm": (lambda t: F.local_response_norm(t, 5), (image,)),
        "normalize": (lambda t: F.normalize(t), (torch.randn(1024, 512),)),
        "cross_entropy": (lambda t, i: F.cross_entropy(t, i), (torch.randn(512, 1000), torch.randint(0, 1000, (512,)))),
        "nll_loss": (lambda t, i: F.nll_loss(t, i), (torch.randn(512, 1000), torch.randint(0, 1000, (512,)))),
        "mse_loss": (lambda t, u: F.mse_loss(t, u), (torch.randn(1024, 512), torch.randn(1024, 512))),
        "smooth_l1_loss": (lambda t, u: F.smooth_l1_loss(t, u), (torch.randn(1024, 512), torch.randn(1024, 512))),
        "kl_div": (lambda t, u: F.kl_div(t, u, reduction="batchmean"), (torch.randn(1024, 512), torch.rand(1024, 512))),
        "bce_with_logits": (lambda t, u: F.binary_cross_entropy_with_logits(t, u), (torch.randn(1024, 512), torch.rand(1024, 512))),
        "ctc_loss": (lambda t, i: F.ctc_loss(t, i, torch.full((16,), 50), torch.full((16,), 20)),
                     (torch.randn(50, 16, 30).log_softmax(2), torch.randint(1, 30, (16, 20)))),
        "cosine_similarity": (lambda t, u: F.cosine_similarity(t, u), (torch.randn(1024, 512), torch.randn(1024, 512))),
        "cdist": (lambda t, u: torch.cdist(t, u), (torch.randn(512, 64), torch.randn(512, 64))),
        "cdist_small": (lambda t, u: torch.cdist(t, u), (torch.randn(64, 20, 32), torch.randn(64, 20, 32))),
        "cdist_1": (lambda t, u: torch.cdist(t, u, p=1.0), (torch.randn(512, 64), torch.randn(512, 64))),
        "cdist_3": (lambda t, u: torch.cdist(t, u, p=3.0), (torch.randn(128, 64), torch.randn(128, 64))),
        "cdist_inf": (lambda t, u: torch.cdist(t, u, p=math.inf), (torch.randn(512, 64), torch.randn(512, 64))),
        "cdist_exact": (lambda t, u: torch.cdist(t, u, compute_mode="donot_use_mm_for_euclid_dist"), (torch.randn(512, 64), torch.randn(512, 64))),
        "pdist": (lambda t: F.pdist(t), (torch.randn(256, 64),)),
        "mm": (lambda t, u: t @ u, (a, b)),
        "mm_f64": (lambda t, u: t @ u, (a.double(), b.double())),
        "mm_i64": (lambda t, u: t @ u, (torch.randint(-9, 9, (128, 128)), torch.randint(-9, 9, (128, 128)))),
        "mm_bf16": (lambda t, u: t @ u, (a.bfloat16(), b.bfloat16())),
        "mv": (lambda t, u: t @ u, (torch.randn(2048, 2048), torch.randn(2048))),
        "dot": (lambda t, u: torch.dot(t, u), (torch.randn(1 << 20), torch.randn(1 << 20))),
        "bmm": (lambda t, u: t @ u, (torch.randn(16, 128, 64), torch.randn(16, 64, 128))),
        "outer": (lambda t, u: torch.outer(t, u), (torch.randn(1024), torch.randn(1024))),
        "einsum": (lambda t, u: torch.einsum("bij,bkj->bik", t, u), (torch.randn(16, 128, 64), torch.randn(16, 128, 64))),
        "cross": (lambda t, u: torch.cross(t, u, dim=-1), (torch.randn(100000, 3), torch.randn(100000, 3))),
        "trapezoid": (lambda t: torch.trapezoid(t), (torch.randn(1024, 1024),)),
        "attention": (lambda t: F.scaled_dot_product_attention(t, t, t), (q,)),
        "conv1d": (lambda t, w: F.conv1d(t, w, padding=1), (torch.randn(4, 64, 1000), torch.randn(64, 64, 3))),
        "conv2d": (lambda t, w: F.conv2d(t, w, padding=1), (image, torch.randn(64, 64, 3, 3))),
        "conv2d_depthwise": (lambda t, w: F.conv2d(t, w, padding=1, groups=64), (image, torch.randn(64, 1, 3, 3))),
        "conv3d": (lambda t, w: F.conv3d(t, w, padding=1), (torch.randn(1, 16, 16, 28, 28), torch.randn(16, 16, 3, 3, 3))),
        "conv_transpose2d": (lambda t, w: F.conv_transpose2d(t, w, stride=2), (image[:, :, :28, :28].contiguous(), torch.randn(64, 32, 2, 2))),
        "solve": (lambda t, u: torch.linalg.solve(t, u), (torch.randn(8, 64, 64), torch.randn(8, 64, 8))),
        "inv": (lambda t: torch.linalg.inv(t), (torch.randn(8, 64, 64),)),
        "det": (lambda t: torch.linalg.det(t), (torch.randn(8, 64, 64),)),
        "svd": (lambda t: torch.linalg.svdvals(t), (torch.randn(8, 32, 32),)),
        "bincount": (lambda t: torch.bincount(t, minlength=100), (torch.randint(0, 100, (100000,)),)),
        "nonzero": (lambda t: torch.nonzero(t), ((torch.rand(512, 512) > 0.9),)),
        "unique": (lambda t: torch.unique(t), (torch.randint(0, 1000, (100000,)),)),
        "lstm": (lambda t, h, c, w, u: torch.lstm(t, (h, c), (w, u), False, 1, 0.0, False, False, False)[0],
                 (torch.randn(32, 8, 64), torch.randn(1, 8, 64), torch.randn(1, 8, 64), torch.randn(256, 64), torch.randn(256, 64))),
    }


def complexes():
    z = torch.randn(512, 1024, dtype=torch.complex64)
    a = torch.randn(256, 256, dtype=torch.complex64)
    signal = torch.randn(4, 16000)
    return {
        "complex_mul": (lambda t, u: t * u, (z, z.flip(0).contiguous())),
        "complex_add": (lambda t, u: t + u, (z, z.flip(0).contiguous())),
        "complex_div": (lambda t, u: t / u, (z, z.flip(0).contiguous())),
        "complex_abs": (lambda t: t.abs(), (z,)),
        "complex_exp": (lambda t: t.exp(), (z[:128].contiguous(),)),
        "complex_conj": (lambda t: t.conj().resolve_conj(), (z,)),
        "complex_scale": (lambda t: t * 2.0, (z,)),
        "complex_rotary": (lambda t, u: torch.view_as_real(torch.view_as_complex(t) * u),
                           (torch.randn(8, 128, 32, 2), torch.randn(128, 32, dtype=torch.complex64))),
        "complex_mm": (lambda t, u: t @ u, (a, a.flip(0).contiguous())),
        "complex_bmm": (lambda t, u: t @ u, (a.reshape(16, 64, 64), a.reshape(16, 64, 64))),
        "complex_mv": (lambda t, u: t @ u, (a, a[0].contiguous())),
        "complex_mm_f64": (lambda t, u: t @ u, (a.to(torch.complex128), a.to(torch.complex128))),
        "complex_sum": (lambda t: t.sum(-1), (z,)),
        "angle": (lambda t: t.angle(), (z,)),
        "fft": (lambda t: torch.fft.fft(t), (z,)),
        "rfft": (lambda t: torch.fft.rfft(t), (torch.randn(512, 1024),)),
        "irfft": (lambda t: torch.fft.irfft(t), (torch.randn(512, 513, dtype=torch.complex64),)),
        "fft2": (lambda t: torch.fft.fft2(t), (torch.randn(8, 128, 128, dtype=torch.complex64),)),
        "rfft2": (lambda t: torch.fft.rfft2(t), (torch.randn(8, 128, 128),)),
        "fft_odd": (lambda t: torch.fft.fft(t), (torch.randn(512, 1001, dtype=torch.complex64),)),
        "fft_400": (lambda t: torch.fft.rfft(t), (torch.randn(512, 400),)),
        "stft": (lambda t, w: torch.view_as_real(torch.stft(t, 400, 160, window=w, return_complex=True)), (signal, torch.hann_window(400))),
        "stft_512": (lambda t, w: torch.view_as_real(torch.stft(t, 512, 128, window=w, return_complex=True)), (signal, torch.hann_window(512))),
        "istft": (lambda t, w: torch.istft(t, 512, 128, window=w), (torch.stft(signal, 512, 128, window=torch.hann_window(512), return_complex=True), torch.hann_window(512))),
        "spectrogram": (lambda t, w: torch.stft(t, 512, 128, window=w, return_complex=True).abs() ** 2, (signal, torch.hann_window(512))),
    }


def timed(name, function, inputs, options):
    module = Module(function)
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path, report = pathlib.Path(folder) / "model.pt2", pathlib.Path(folder) / "report.json"
        torch.export.save(torch.export.export(module, inputs), path)
        command = [options.cli, "run", path, "--backend", "cpu", "--repeat", options.repeat, "--json", report]
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True)
        rounds = []
        for _ in range(options.rounds):
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            rounds.append((json.loads(report.read_text())["median_ms"], median_of(lambda: compiled(*inputs), options.repeat)))
    return [statistics.median(r[i] for r in rounds) for i in range(2)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--below", type=float, default=0.8)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    below, ratios = [], []
    print(f"{'operator':30}{'ours':>9}{'torch':>9}{'torch/ours':>12}")
    for name, (function, inputs) in operators().items():
        if options.only and name not in options.only.split(","):
            continue
        try:
            ours, rival = timed(name, function, inputs, options)
        except Exception as error:  # what one of the two refuses is said, and the rest goes on
            print(f"{name:30} {str(error).splitlines()[0][:120]}", flush=True)
            continue
        ratios.append(rival / ours)
        if ratios[-1] < options.below:
            below.append((ratios[-1], name))
        print(f"{name:30}{ours:9.3f}{rival:9.3f}{ratios[-1]:12.2f}", flush=True)
    if ratios:
        print(f"{len(ratios)} operators, geometric mean {statistics.geometric_mean(ratios):.2f}")
        print(f"below {options.below}: " + ", ".join(f"{name} {ratio:.2f}" for ratio, name in sorted(below)))


if __name__ == "__main__":
    sys.exit(main())
