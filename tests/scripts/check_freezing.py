#!/usr/bin/env python3
"""Frozen graphs of Cutaway against PyTorch, eager and frozen: random layers with arithmetic on constants behind them.

    check_freezing.py CLI [COUNT [SEED]] [--pytorch] [--backend reference|cpu] [--dtypes f32,f64,bf16,f16]

Makes COUNT layers (default 1000; convolutions in one to three dims, grouped, dilated, transposed, with and without batch norm;
products with and without bias, products that share an operand; each with up to five operations on constants of shapes that
broadcast), exports fifty at a time, and runs `CLI run FILE --freeze` with the results of eager mode as expectation, halves by
their rounding. With --pytorch the same module goes through PyTorch's own freezing passes, whose graph runs in eager mode:
layers for which PyTorch's frozen results are others than its eager ones are listed, and `--freeze --parity` is compared with
PyTorch's frozen results. Needs PyTorch 2.11 and safetensors. Exit status 0 if all agree; each module that does not is kept and
named.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
# What results may be off by, as a share of the largest magnitude: each fold rounds once more.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 4e-2, torch.float16: 5e-3}


class Layer(torch.nn.Module):
    def __init__(self, draw, dtype):
        super().__init__()
        self.steps, self.dtype, self.norm, self.more = [], dtype, None, []
        self.kind = draw.randrange(7)
        if self.kind < 3:
            self.convolution(draw)
        else:
            self.product(draw)
        self.channel = 1 if self.kind < 3 else -1
        self.to(dtype)
        self.example = self.example.to(dtype)
        shape = list(self.first(self.example).shape)
        for number in range(draw.randint(1, 5)):
            self.constant(draw, number, shape, dtype)

    def convolution(self, draw):
        dims, groups = self.kind + 1, draw.choice([1, 1, 2])
        channels, out = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
        make = getattr(torch.nn, ("ConvTranspose" if draw.randrange(3) == 0 else "Conv") + f"{dims}d")
        self.layer = make(channels, out, draw.randint(1, 3), stride=draw.randint(1, 2), padding=draw.randint(0, 1),
                          dilation=draw.randint(1, 2), groups=groups, bias=draw.random() < 0.5)
        self.example = torch.randn(2, channels, *[draw.randint(5, 7) for _ in range(dims)])
        if draw.random() < 0.3:
            self.norm = getattr(torch.nn, f"BatchNorm{dims}d")(out, affine=draw.random() < 0.8)
            for value in (self.norm.running_mean, self.norm.running_var):
                value.copy_(torch.rand(out) + 0.5)
            self.norm.eval()

    def product(self, draw):
        inner, out = draw.randint(1, 5), draw.randint(1, 6)
        self.layer = torch.nn.Linear(inner, out, bias=draw.random() < 0.5)
        self.example = torch.randn(6, inner) if self.kind in (3, 5) else torch.randn(2, 3, inner)
        if self.kind == 5:
            self.scales = draw.choice([(1, 1), (1, 2), (0.5, 1), (0, 1)])
            self.weight = torch.nn.Parameter(torch.randn(inner, out))
            self.bias = torch.nn.Parameter(torch.randn(out))
            del self.layer
        if self.kind == 6:
            self.more = torch.nn.ModuleList(
                torch.nn.Linear(inner, out, bias=self.layer.bias is not None) for _ in range(draw.randint(1, 3)))

    def first(self, x):
        if self.kind == 5:
            return torch.addmm(self.bias, x, self.weight, beta=self.scales[0], alpha=self.scales[1])
        y = self.layer(x)
        for other in self.more:
            y = y + torch.relu(other(x))
        return y if self.norm is None else self.norm(y)

    def constant(self, draw, number, shape, dtype):
        op = draw.choice(["add", "sub", "mul", "div", "add", "mul", "relu"])
        if op == "relu":
            self.steps.append((op, None, 1, False))
            return
        if draw.random() < 0.25:
            self.steps.append((op, draw.choice([1.5, 2]), draw.choice([1, 1, 1, 2]), False))
            return
        sizes = [1] * len(shape)
        how = draw.randrange(8)
        if how < 4:
            sizes[self.channel] = shape[self.channel]
        elif how < 6:
            sizes = [size if draw.random() < 0.5 else 1 for size in shape]
        while sizes and sizes[0] == 1 and draw.random() < 0.5:
            sizes.pop(0)
        wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) and draw.random() < 0.5 else dtype
        self.register_buffer(f"constant{number}", (torch.rand(sizes) + 0.5).to(wide))
        self.steps.append((op, f"constant{number}", draw.choice([1, 1, 1, 2]), op != "div" and draw.random() < 0.15))

    def forward(self, x):
        y = self.first(x)
        for op, other, alpha, swapped in self.steps:
            if op == "relu":
                y = torch.relu(y)
                continue
            other = getattr(self, other) if isinstance(other, str) else other
            if swapped:
                y, other = other, y
            more = {"alpha": alpha} if alpha != 1 and op in ("add", "sub") else {}
            y = getattr(torch, op)(y, other, **more)
        return y.to(self.dtype)

    def describe(self):
        words = [f"addmm{self.scales}" if self.kind == 5 else str(self.layer)]
        words += [f"+{len(self.more)} sharing x"] if self.more else []
        words += ["batch_norm"] if self.norm is not None else []
        for op, other, alpha, swapped in self.steps:
            value = f"{tuple(getattr(self, other).shape)} {getattr(self, other).dtype}" if isinstance(other, str) else other
            words.append(op if op == "relu" else f"{op}({value}, ..)" if swapped else f"{op}(.., {value}, alpha={alpha})")
        return f"{tuple(self.example.shape)} " + " | ".join(words)


class Many(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *inputs):
        return tuple(layer(x) for layer, x in zip(self.layers, inputs))


def frozen_by_pytorch(model, inputs, patches):
    """What PyTorch's frozen graph computes, run call by call; none where PyTorch cannot freeze or run it."""
    from functorch.compile import make_boxed_func
    from torch._inductor import compile_fx, config

    def as_it_stands(graph, _, **__):
        return make_boxed_func(graph.forward)

    def backend(graph, examples):
        return compile_fx.compile_fx(graph, examples, inner_compile=as_it_stands)

    torch._dynamo.reset()
    try:
        with config.patch(freezing=True, **patches), torch.no_grad():
            return list(torch.compile(model, backend=backend)(*inputs)), ""
    except Exception as error:  # noqa: BLE001, it is what PyTorch does that is looked at
        return None, " ".join(str(error).split())


def frozen_layers(model, inputs, patches):
    """The same, layer by layer where PyTorch fails with all of them; None for those with which it does."""
    results, _ = frozen_by_pytorch(model, inputs, patches)
    if results:
        return results
    results = []
    for layer, x in zip(model.layers, inputs):
        alone, said = frozen_by_pytorch(Many([layer]).eval(), (x,), patches)
        results.append(alone[0] if alone else None)
        if not alone:
            print(f"PyTorch does not freeze {layer.describe()}: {said[:160]}", flush=True)
    # The others together again: layers that are frozen together share numbers (trap 4).
    could = [i for i, value in enumerate(results) if value is not None]
    together, _ = frozen_by_pytorch(Many([model.layers[i] for i in could]).eval(), tuple(inputs[i] for i in could), patches)
    for i, value in zip(could, together or []):
        results[i] = value
    return results


def agree(found, expected):
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    most = expected.double().abs().max().item() if expected.numel() else 0
    return bool(((found.double() - expected.double()).abs() <= TOLERANCE[expected.dtype] * max(1.0, most)).all())


def save(name, tensors, word):
    save_file({f"{word}_{i}": x.contiguous().clone() for i, x in enumerate(tensors)}, name)


def export(name, layers, expected):
    """Writes the layers, their inputs and what is expected of them; the three files."""
    model, inputs = Many(layers).eval(), tuple(layer.example for layer in layers)
    files = [name + ending for ending in (".pt2", ".inputs.safetensors", ".expected.safetensors")]
    with torch.no_grad():
        torch.export.save(torch.export.export(model, inputs), files[0])
    save(files[1], inputs, "input")
    save(files[2], expected, "output")
    return files


def ran(command, tolerance):
    """Numbers of the results that differ; all of them (-1) if it does not run."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return [], ""
    try:
        report = json.loads(done.stdout)
        bad = [i for i, row in enumerate(report["outputs"]) if not row.get("within", False) and
               ("max_abs_error" not in row or row["non_finite"] or
                row["max_abs_error"] > tolerance * max(1.0, row["max_expected"]))]
        if report["outputs"]:
            return bad, ""
    except (ValueError, KeyError):
        pass
    return [-1], done.stdout[-300:] + done.stderr.strip()[-1000:]


def layers_of(draw, dtype, count):
    layers = []
    while len(layers) < count:
        try:
            layer = Layer(draw, dtype)
            if torch.isfinite(layer(layer.example).float()).all():
                layers.append(layer)
        except RuntimeError:  # a kernel larger than the picture, or constants that do not broadcast to the result
            continue
    return layers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--pytorch", action="store_true")
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--dtypes", default="f32,f64,bf16,f16")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    counts = {"eager": [0, 0], "parity": [0, 0]}
    others = 0
    folder = tempfile.mkdtemp(prefix="freezing")
    dtypes = [DTYPES[name] for name in arguments.dtypes.split(",")]
    for part in range((arguments.count + 49) // 50):
        dtype = dtypes[part % len(dtypes)]
        with torch.no_grad():
            layers = layers_of(draw, dtype, min(50, arguments.count - 50 * part))
            model, inputs = Many(layers).eval(), tuple(layer.example for layer in layers)
            expected = model(*inputs)
        name = os.path.join(folder, f"{part}")
        wanted = {"eager": (layers, expected, [])}
        folding = part // len(dtypes) % 2 == 1
        if arguments.pytorch:
            patches = {"enable_linear_binary_folding": folding, "cpp.enable_concat_linear": folding}
            frozen = frozen_layers(model, inputs, patches)
            for i, layer in enumerate(layers):
                if frozen[i] is not None and not agree(frozen[i], expected[i]):
                    others += 1
                    print(f"PyTorch frozen differs from PyTorch: {layer.describe()}", flush=True)
            could = [i for i, value in enumerate(frozen) if value is not None]
            wanted["parity"] = ([layers[i] for i in could], [frozen[i] for i in could], ["--parity"])
        for which, (chosen, values, more) in wanted.items():
            files = export(f"{name}.{which}", chosen, values)
            command = [arguments.cli, "run", files[0], "--freeze", "--inputs", files[1], "--expect", files[2], "--backend",
                       arguments.backend, "--json", "-", *more]
            if folding:
                command += ["--enable", "freeze=enable_linear_binary_folding:true,enable_concat_linear:true"]
            bad, said = ran(command, TOLERANCE[dtype])
            counts[which][1] += len(chosen)
            counts[which][0] += 0 if bad == [-1] else len(chosen) - len(bad)
            for i in bad:
                print(f"{files[0]} {dtype}: {chosen[i].describe() if i >= 0 else said}", flush=True)
            for file in files if not bad else []:
                os.remove(file)
    for which, (good, of) in counts.items():
        if of:
            print(f"{which}: {good} of {of} layers agree, seed {arguments.seed}")
    if arguments.pytorch:
        print(f"{others} layers compute something else in PyTorch when it freezes them")
    return 0 if all(good == of for good, of in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
