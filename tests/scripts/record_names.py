#!/usr/bin/env python3
"""Writes the names of all operators of torch.ops.aten, without out= forms, for tests/engine/aten_names_test.cpp.

    record_names.py tests/data/ops/aten_names.txt       needs PyTorch; the version used goes into the first line
"""
import sys

import torch

names = {name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
names = sorted(name if "." in name else name + ".default" for name in names if not ("." in name and name.endswith("out")))
with open(sys.argv[1], "w") as file:
    file.write(f"# torch.ops.aten of PyTorch {torch.__version__.split('+')[0]}\n" + "\n".join(names) + "\n")
