#!/usr/bin/env python3
"""Times single kernels over 4 M floats against torch.compile and against a plain copy, in one run.

  bench_kernels.py CLI [--only NAME] [--repeat 15] [--threads 2] [--no-torch] [--warm]

Needs PyTorch, which neither the product nor its tests do. Prints, per kernel: our median in ms, torch.compile's, the
ratio, and the share of the copy's bandwidth that our kernel reaches (bytes that must be read and written by its time).
Before each run all caches are filled with other memory, for all three; --warm: each run finds what the one before has
left there.
"""
import argparse, json, pathlib, statistics, subprocess, sys, tempfile, time

import logging

import torch
from torch import nn

N = 4 * 1024 * 1024


def make():
    x = torch.randn(2048, 2048)
    parts = tuple(torch.randn(256, 2048) for _ in range(8))
    wide = tuple(torch.randn(2048, 256) for _ in range(8))
    f = nn.functional
    return {
        "softmax": (lambda a: torch.softmax(a, -1), (x,), 2),
        "softmax_1024": (lambda a: torch.softmax(a, -1), (x.reshape(4096, 1024),), 2),
        "layer_norm": (lambda a: f.layer_norm(a, (2048,)), (x,), 2),
        "gelu": (lambda a: f.gelu(a), (x,), 2),
        "gelu_tanh": (lambda a: f.gelu(a, approximate="tanh"), (x,), 2),
        "sum": (lambda a: a.sum(), (x,), 1),
        "sum_rows": (lambda a: a.sum(-1), (x,), 1),
        "sum_columns": (lambda a: a.sum(0), (x,), 1),
        "mean_variance": (lambda a: torch.var_mean(a), (x,), 1),
        "amax": (lambda a: a.amax(), (x,), 1),
        "argmax": (lambda a: a.argmax(-1), (x,), 1),
        "transpose": (lambda a: a.t().contiguous(), (x,), 2),
        "permute": (lambda a: a.permute(0, 2, 3, 1).contiguous(), (x.reshape(4, 64, 128, 128),), 2),
        "cat_rows": (lambda *a: torch.cat(a, 0), parts, 2),
        "cat_columns": (lambda *a: torch.cat(a, 1), wide, 2),
        "add": (lambda a: a + 1, (x,), 2),
    }


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def median_of(run, repeat, elsewhere=None):
    run(), run()
    times = []
    for _ in range(repeat):
        if elsewhere is not None:
            elsewhere.add_(1)
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("--only")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    source, target = torch.randn(N), torch.empty(N)
    elsewhere = None if options.warm else torch.zeros(32 * N)
    # Before and after each kernel: what else the machine does changes from second to second.
    copy_now = lambda: median_of(lambda: target.copy_(source), options.repeat, elsewhere)
    print(f"{'kernel':16}{'ours':>8}{'torch':>8}{'torch/ours':>12}{'copy':>8}{'of copy':>9}")
    for name, (function, inputs, passes) in make().items():
        if options.only and options.only != name:
            continue
        module = Module(function)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.pt2"
            torch.export.save(torch.export.export(module, inputs), path)
            report = pathlib.Path(folder) / "report.json"
            command = [options.cli, "run", path, "--backend", "cpu", "--repeat", options.repeat, "--json", report]
            command += [] if options.warm else ["--cold"]
            copies = [copy_now()]
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            if done.returncode:
                print(f"{name:16} {done.stderr.strip()[:160]}")
                continue
            ours = json.loads(report.read_text())["median_ms"]
            copies.append(copy_now())
        rival = float("nan")
        if not options.no_torch:
            with torch.no_grad():
                torch._dynamo.reset()
                compiled = torch.compile(module, fullgraph=True)
                rival = median_of(lambda: compiled(*inputs), options.repeat, elsewhere)
        copy = sum(copies) / 2
        share = copy * passes / 2 / ours
        print(f"{name:16}{ours:8.2f}{rival:8.2f}{rival / ours:12.2f}{copy:8.2f}{100 * share:8.0f}%", flush=True)


if __name__ == "__main__":
    sys.exit(main())
