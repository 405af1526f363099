#!/usr/bin/env python3
"""Times whole models of real size against torch.compile in one run, inference and training, and compares results.

  bench_models.py CLI [--only NAME,NAME] [--rounds 5] [--repeat 20] [--threads 2] [--no-torch] [--no-training] [--keep DIR]

Needs PyTorch 2.11, torchvision and transformers, which neither the product nor its tests do. Weights are random; batch norms
have random statistics. A round times each of: ours unfrozen, ours frozen, torch.compile with freezing; then ours and
torch.compile's training step (forward, sum of all results as loss, backward). Printed are medians of the rounds' medians in
ms, the rival's time by ours, the time of the first call of either with empty caches, and the largest difference from eager
PyTorch as a share of the largest magnitude; then the geometric mean of the ratios; then, of frozen runs and of training, ms from
the request to the results without the timed runs, the most memory that the worker has held in MiB, and that by 1.2 times the
weights and the values of a run. With --keep the exported files stay in DIR and are taken from there the next time.
"""
import argparse
import json
import logging
import math
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch._inductor.config as config
from safetensors.torch import save_file

from bench_kernels import median_of

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class Plain(torch.nn.Module):
    """A model of transformers that takes and gives tensors alone."""

    def __init__(self, inner, names, results=1, **fixed):
        super().__init__()
        self.inner, self.names, self.results, self.fixed = inner, names, results, fixed

    def forward(self, *args):
        out = self.inner(**dict(zip(self.names, args)), **self.fixed, return_dict=False)
        return tuple(out[:self.results])


class Recommender(torch.nn.Module):
    """27 embedding bags and two perceptrons with products of all pairs between them, as DLRM has them."""

    def __init__(self, tables=27, rows=20000, width=64):
        super().__init__()
        self.bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = torch.nn.Sequential(torch.nn.Linear(13, 512), torch.nn.ReLU(), torch.nn.Linear(512, width), torch.nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = torch.nn.Sequential(torch.nn.Linear(pairs + width, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense, indices, offsets):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [bag(indices[i], offsets[i]) for i, bag in enumerate(self.bags)], 1)
        products = vectors @ vectors.transpose(1, 2)
        return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1)).sigmoid()


def vision(name):
    import torchvision
    model = getattr(torchvision.models, name)()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
        if isinstance(part, torch.nn.Linear) and part.weight.abs().max() == 0:
            part.weight.data.normal_(0, 0.02)
    return model, (torch.randn(1, 3, 224, 224),)


def text(name):
    import transformers as t
    ids = torch.randint(0, 30000, (1, 128))
    if name == "bert_base":
        return Plain(t.BertModel(t.BertConfig()), ["input_ids", "attention_mask"], 2), (ids, torch.ones(1, 128, dtype=torch.int64))
    if name == "gpt2":
        return Plain(t.GPT2LMHeadModel(t.GPT2Config()), ["input_ids"], use_cache=False), (ids,)
    if name == "t5_small":
        return Plain(t.T5ForConditionalGeneration(t.T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8)),
                     ["input_ids", "decoder_input_ids"], use_cache=False), (ids, ids[:, :64].contiguous())
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    return Plain(WhisperEncoder(t.WhisperConfig(d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048)),
                 ["input_features"]), (torch.randn(1, 80, 3000),)


def recommender(name):
    batch, bags = 256, 27
    return Recommender(bags), (torch.randn(batch, 13), torch.randint(0, 20000, (bags, 4 * batch)),
                               torch.arange(0, 4 * batch, 4).expand(bags, batch).contiguous())


MODELS = {"resnet50": vision, "efficientnet_b0": vision, "densenet121": vision, "convnext_tiny": vision, "swin_t": vision,
          "vit_b_16": vision, "bert_base": text, "gpt2": text, "t5_small": text, "whisper_encoder": text,
          "recommender": recommender}


def tensors_of(out):
    if torch.is_tensor(out):
        return [out]
    return [t for part in out for t in tensors_of(part)]


def loss_of(out):
    return sum(t.sum() for t in tensors_of(out) if t.is_floating_point())


class Ours:
    def __init__(self, cli, folder, repeat, threads):
        self.cli, self.folder, self.repeat = cli, folder, repeat
        self.environment = dict(os.environ, OMP_NUM_THREADS=str(threads))

    def call(self, *options, repeat=None):
        command = [self.cli, "run", self.folder / "model.pt2", "--inputs", self.folder / "inputs.safetensors", "--backend", "cpu",
                   "--repeat", repeat or self.repeat, "--json", "-", *options]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=self.environment)
        if not done.stdout:
            raise RuntimeError(done.stderr.strip()[:300])
        return json.loads(done.stdout)

    def first(self, *options):
        """Seconds from a file to its first result, with nothing in the cache."""
        with tempfile.TemporaryDirectory() as cache:
            begin = time.perf_counter()
            self.call("--cache", pathlib.Path(cache) / "cache.db", *options, repeat=1)
            return time.perf_counter() - begin


def beside_the_runs(reports):
    """Start, peak memory, and that by what it should be at the most."""
    peak = statistics.median(r["peak_bytes"] for r in reports)
    return (statistics.median(r["start_ms"] for r in reports), peak / 2**20,
            peak / (1.2 * reports[0]["weights_bytes"] + reports[0]["arena_bytes"]))


def export(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model, args = MODELS[name](name)
    model.eval()
    path = folder / "model.pt2"
    if not (folder / "inputs.safetensors").exists():
        torch.export.save(torch.export.export(model, args, strict=False), path)
        save_file({f"input_{i}": a.clone().contiguous() for i, a in enumerate(args)}, folder / "inputs.safetensors")
    return model, args


def largest_difference(folder, expected, cli, options):
    """Of our results from eager PyTorch's, by the largest magnitude; 'differs' where ours says so by its own tolerance."""
    save_file({f"output_{i}": t.detach().clone().contiguous() for i, t in enumerate(expected)}, folder / "expect.safetensors")
    report = cli.call("--expect", folder / "expect.safetensors", *options, repeat=1)
    for refused in report.get("refused", []):
        print(f"{folder.name}: {refused}", flush=True)
    scale = max(float(t.detach().abs().max()) for t in expected if t.is_floating_point())
    worst = max((float(o.get("max_abs_error") or 0) for o in report["outputs"]), default=0)
    return worst / scale, bool(report["matches"])


def compiled_rival(name, folder, model, first):
    """The exported program compiled and run once, else the module itself; None where torch.compile fails at both."""
    for kind, module in (("the exported program", torch.export.load(folder / "model.pt2").module()), ("the module", model)):
        torch._dynamo.reset()
        compiled = torch.compile(module)
        try:
            first(compiled)
            return compiled
        except Exception as error:
            line = str(error).strip().splitlines()[0][:100]
            print(f"{name}: torch.compile fails at {kind}, {'frozen' if config.freezing else 'training'}: {line}", flush=True)
    return None


def row(name, options, folder):
    torch.set_num_threads(options.threads)
    model, args = export(name, folder)
    ours = Ours(options.cli, folder, options.repeat, options.threads)
    result = {"first": ours.first("--freeze")}
    with torch.no_grad():
        expected = tensors_of(model(*args))
    result["difference"], result["matches"] = largest_difference(folder, expected, ours, ["--freeze"])
    rounds, frozen = [], []

    def both(rival):
        frozen.append(ours.call("--freeze"))
        rounds.append((ours.call()["median_ms"], frozen[-1]["median_ms"], rival()))

    if not options.no_torch:
        config.freezing = True
        with tempfile.TemporaryDirectory() as cache, torch.no_grad():
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            begin = time.perf_counter()
            compiled = compiled_rival(name, folder, model, lambda run: run(*args))
            result["rival_first"] = time.perf_counter() - begin
            for _ in range(options.rounds):
                both(lambda: median_of(lambda: compiled(*args), options.repeat) if compiled is not None else math.nan)
    else:
        for _ in range(options.rounds):
            both(lambda: math.nan)
    result["cost"] = beside_the_runs(frozen)
    result["unfrozen"], result["frozen"], result["rival"] = (statistics.median(r[i] for r in rounds) for i in range(3))
    if options.no_training:
        return result

    def step_of(run):
        run.zero_grad(set_to_none=True)
        loss_of(run(*args)).backward()

    rounds, steps = [], []
    repeat = max(3, options.repeat // 4)

    def step(rival):
        steps.append(ours.call("--mode", "training", repeat=repeat))
        rounds.append((steps[-1]["median_ms"], rival()))

    if options.no_torch:
        for _ in range(options.rounds):
            step(lambda: math.nan)
    else:
        config.freezing = False
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            trained = compiled_rival(name, folder, model, step_of)
            for _ in range(options.rounds):
                step(lambda: median_of(lambda: step_of(trained), repeat) if trained is not None else math.nan)
    result["training_cost"] = beside_the_runs(steps)
    result["training"], result["rival_training"] = (statistics.median(r[i] for r in rounds) for i in range(2))
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--keep")
    options = parser.parse_args()
    print(f"{'model':17}{'unfrozen':>9}{'frozen':>8}{'torch':>8}{'ratio':>7}{'training':>10}{'torch':>8}{'ratio':>7}"
          f"{'first':>8}{'torch':>8}{'difference':>12}")
    ratios, training, costs = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only.split(",") if options.only else MODELS:
            # In a process of its own: where torch.compile has failed once, it fails at models that it can compile.
            with multiprocessing.get_context("spawn").Pool(1) as process:
                r = process.apply(row, (name, options, pathlib.Path(options.keep or temporary) / name))
            ratios.append(r["rival"] / r["frozen"])
            trains = "training" in r
            costs.append((name, r["cost"], r.get("training_cost", (math.nan,) * 3)))
            if trains:
                training.append(r["rival_training"] / r["training"])
            print(f"{name:17}{r['unfrozen']:9.2f}{r['frozen']:8.2f}{r['rival']:8.2f}{ratios[-1]:7.2f}"
                  f"{r['training'] if trains else math.nan:10.1f}{r['rival_training'] if trains else math.nan:8.1f}"
                  f"{training[-1] if trains else math.nan:7.2f}{r['first']:7.1f}s{r.get('rival_first', math.nan):7.1f}s"
                  f"{r['difference']:11.1e}{'' if r['matches'] else ' differs'}", flush=True)
    for title, values in (("inference", ratios), ("training", training)):
        values = [v for v in values if not math.isnan(v)]
        if values:
            print(f"geometric mean, {title}: {statistics.geometric_mean(values):.2f}, smallest {min(values):.2f}")
    print(f"{'model':17}{'start':>8}{'MiB':>8}{'share':>7}{'training':>10}{'MiB':>8}{'share':>7}")
    for name, frozen, step in costs:
        print(f"{name:17}{frozen[0]:8.1f}{frozen[1]:8.1f}{frozen[2]:7.2f}{step[0]:10.1f}{step[1]:8.1f}{step[2]:7.2f}")


if __name__ == "__main__":
    sys.exit(main())
