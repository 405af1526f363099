#!/usr/bin/env python3
"""Frozen graphs of Cutaway against PyTorch's eager mode: random layers with arithmetic on constants behind them.

    check_freezing.py CLI [COUNT [SEED]]

Makes COUNT layers (default 1000; convolutions in one to three dims, grouped, dilated, transposed; products with and without
bias; each with up to five operations on constants of shapes that broadcast), exports fifty at a time, and runs
`CLI run FILE --freeze` with the results of eager mode as expectation, by the reference interpreter, on bf16 by its rounding.
Needs PyTorch 2.11 and safetensors. Exit status 0 if all agree; each module that does not is kept and named.
"""
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file


class Layer(torch.nn.Module):
    def __init__(self, draw, dtype):
        super().__init__()
        self.steps, self.dtype = [], dtype
        kind = draw.randrange(5)
        if kind < 3:
            dims, groups = kind + 1, draw.choice([1, 1, 2])
            channels, out = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
            make = getattr(torch.nn, ("ConvTranspose" if draw.randrange(3) == 0 else "Conv") + f"{dims}d")
            self.layer = make(channels, out, draw.randint(1, 3), stride=draw.randint(1, 2), padding=draw.randint(0, 1),
                              dilation=draw.randint(1, 2), groups=groups, bias=draw.random() < 0.5)
            self.example = torch.randn(2, channels, *[draw.randint(5, 7) for _ in range(dims)])
        else:
            inner, out = draw.randint(1, 5), draw.randint(1, 6)
            self.layer = torch.nn.Linear(inner, out, bias=draw.random() < 0.5)
            self.example = torch.randn(6, inner) if kind == 3 else torch.randn(2, 3, inner)
        self.channel = 1 if kind < 3 else -1
        self.to(dtype)
        self.example = self.example.to(dtype)
        shape = list(self.layer(self.example).shape)
        for number in range(draw.randint(1, 5)):
            op = draw.choice(["add", "sub", "mul", "div"])
            if draw.random() < 0.25:
                self.steps.append((op, draw.choice([1.5, 2]), draw.choice([1, 1, 1, 2]), False))
                continue
            sizes = [1] * len(shape)
            how = draw.randrange(8)
            if how < 4:
                sizes[self.channel] = shape[self.channel]
            elif how < 6:
                sizes = [size if draw.random() < 0.5 else 1 for size in shape]
            while sizes and sizes[0] == 1 and draw.random() < 0.5:
                sizes.pop(0)
            wide = torch.float32 if dtype == torch.bfloat16 and draw.random() < 0.5 else dtype
            value = torch.rand(sizes) + 0.5
            self.register_buffer(f"constant{number}", value.to(wide))
            self.steps.append((op, f"constant{number}", draw.choice([1, 1, 1, 2]), op != "div" and draw.random() < 0.15))

    def forward(self, x):
        y = self.layer(x)
        for op, other, alpha, swapped in self.steps:
            other = getattr(self, other) if isinstance(other, str) else other
            if swapped:
                y, other = other, y
            more = {"alpha": alpha} if alpha != 1 and op in ("add", "sub") else {}
            y = getattr(torch, op)(y, other, **more)
        return y.to(self.dtype)


class Many(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *inputs):
        return tuple(layer(x) for layer, x in zip(self.layers, inputs))


def main():
    cli, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    draw = random.Random(seed)
    torch.manual_seed(seed)
    good = bad = 0
    folder = tempfile.mkdtemp(prefix="freezing")
    for part in range((count + 49) // 50):
        dtype = [torch.float32, torch.float64, torch.bfloat16][part % 3]
        layers = []
        while len(layers) < min(50, count - 50 * part):
            try:
                layers.append(Layer(draw, dtype))
            except RuntimeError:  # a kernel larger than the picture, or constants that do not broadcast to the result
                continue
        model, inputs = Many(layers).eval(), tuple(layer.example for layer in layers)
        with torch.no_grad():
            expected = model(*inputs)
            program = torch.export.export(model, inputs)
        name = os.path.join(folder, f"{part}")
        torch.export.save(program, name + ".pt2")
        save_file({f"input_{i}": x.contiguous() for i, x in enumerate(inputs)}, name + ".inputs.safetensors")
        save_file({f"output_{i}": y.contiguous() for i, y in enumerate(expected)}, name + ".expected.safetensors")
        command = [cli, "run", name + ".pt2", "--freeze", "--inputs", name + ".inputs.safetensors", "--expect",
                   name + ".expected.safetensors", "--backend", "reference"]
        if part % 2:
            command += ["--enable", "freeze=enable_linear_binary_folding:true"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == 0:
            good += len(layers)
            for ending in (".pt2", ".inputs.safetensors", ".expected.safetensors"):
                os.remove(name + ending)
        else:
            bad += 1
            print(f"{name}.pt2, {dtype}:\n{(run.stdout + run.stderr).strip()[-1500:]}", flush=True)
    print(f"{good} of {count} layers agree, seed {seed}" + (f"; {bad} modules of up to 50 do not" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
