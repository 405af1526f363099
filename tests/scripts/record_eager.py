#!/usr/bin/env python3
"""Writes what eager PyTorch computes into tests/data/eager/*.txt, for tests/engine/eager_values_test.cpp.

    python3 tests/scripts/record_eager.py tests/data/eager/*.txt

Needs PyTorch (the version used goes into the file's head); the product, its build and its tests do not. A case is
"=== NAME", a graph as the compiler prints it, and "INPUT: TYPE NUMBERS" for each input; "returns: TYPE NUMBERS" for
each result is written below.
"""
import re
import sys

import torch
import torch._inductor.inductor_prims  # noqa: F401  registers prims of the compiler

try:
    import torchao  # noqa: F401  registers operators of the package
except ImportError:
    pass

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "u8": torch.uint8,
          "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "b8": torch.bool,
          "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def read(text):
    head, numbers = re.match(r"(\w+\[[^]]*\])\s*(.*)", text).groups()
    name, sizes = head[:-1].split("[")
    wide = torch.tensor([float(n) for n in numbers.split()], dtype=torch.float64)
    return wide.to(DTYPES[name]).reshape([int(s) for s in sizes.split(",") if s])


def number(value):
    return "-0" if value == 0 and str(value).startswith("-") else f"{value:.17g}"


def write(tensor):
    shape = ", ".join(map(str, tensor.shape))
    return f"{NAMES[tensor.dtype]}[{shape}] " + " ".join(number(v) for v in tensor.double().flatten().tolist())


def record(path):
    head, *cases = re.split(r"^=== ", open(path).read(), flags=re.M)
    head = re.sub(r"\nPyTorch .*", "", head.rstrip("\n")) + f"\nPyTorch {torch.__version__.split('+')[0]}, on the CPU.\n"
    out = [head]
    for case in cases:
        lines = [line for line in case.rstrip("\n").split("\n") if not line.startswith("returns: ")]
        code = "\n".join(line for line in lines[1:] if not re.match(r"\w+: \w+\[", line))
        names = {"aten": torch.ops.aten, "torchao": torch.ops.torchao, "prims": torch.ops.prims, "torch": torch, "device": torch.device}
        exec(code, names)
        inputs = [read(line.split(": ", 1)[1]) for line in lines[1:] if re.match(r"\w+: \w+\[", line)]
        results = names["forward"](*inputs)
        out.append("=== " + "\n".join(lines + ["returns: " + write(r) for r in results]) + "\n")
    open(path, "w").write("".join(out))


for path in sys.argv[1:]:
    record(path)
