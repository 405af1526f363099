#!/usr/bin/env python3
"""Records joint graphs of attention as PyTorch's joint passes get them, and the calls of what they make of them.

    python3 tests/scripts/record_attention_training.py cpu > tests/data/attention_training_cpu.txt
    python3 tests/scripts/record_attention_training.py cuda > tests/data/attention_training_cuda.txt

Needs PyTorch 2.11; cuda was recorded on an NVIDIA H200. The formulas are PyTorch's own searched ones, compiled as models: forward
and backward together, with sizes as numbers and, on one machine as on the other, with symbolic sizes. tests/engine/
attention_training_test.cpp reads the files. A case is

    # case: name, dtype, device[, symbolic]
    # fused: 1                             (how often a formula was found)
    # calls: 1 aten.mul.Tensor; ...
    class ...
"""
import collections
import operator
import re
import sys
import types
import warnings

import torch
import torch._dynamo
import torch._inductor.config as config
from torch._dynamo.utils import counters
from torch._inductor import compile_fx
from torch._inductor.fx_passes import fuse_attention

warnings.filterwarnings("ignore")
config.force_disable_caches = True
CPU = [("16", "f16"), ("24", "f16"), ("11", "f16"), ("1", "f16"), ("5", "bf16"), ("6", "f16"), ("14", "f16"), ("18", "f16"), ("21", "f16"), ("7", "f16")]
CUDA = [(number, "f16") for number in "1 3 5 7 8 11 13 14 15 16 18 19 21 24 25".split()]
CUDA += [(number, "bf16") for number in "1 5 19 21".split()] + [("1", "f32")]
SYMBOLIC = [("1", "f16"), ("1", "f32"), ("3", "f16"), ("5", "f32"), ("11", "f16"), ("13", "f16"), ("18", "f32"), ("21", "f16"), ("24", "f32")]
DTYPES = {"f16": torch.half, "bf16": torch.bfloat16, "f32": torch.float32}


class Stop(BaseException):
    pass


def formulas(device):
    """name -> (function, example inputs, numbers)"""
    out = {}
    for name, row in fuse_attention._get_sfdp_patterns(device):
        match = re.fullmatch(r"_sfdp_pattern_(\d+)(_half)?_training", name)
        if match:
            out[match[1], bool(match[2])] = row["search_fn"], row["example_inputs"], row.get("scalar_workaround") or {}
    return out


def as_model(function):
    """The function as if it stood in a user's file: Dynamo does not look into PyTorch's own."""
    sys.modules.setdefault("model", types.ModuleType("model"))
    names = dict(function.__globals__, __name__="model", __file__="model.py")
    return types.FunctionType(function.__code__.replace(co_filename="model.py"), names, function.__name__, function.__defaults__)


def calls(graph):
    counts = collections.Counter()
    for node in graph.nodes:
        if node.op == "call_function":
            module = getattr(node.target, "__module__", "")
            counts[f"{module.lstrip('_')}.{node.target.__name__}" if module in ("_operator", "torch") else str(node.target)] += 1
    return "; ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def text(module):
    lines = []
    for line in module.print_readable(False, include_stride=True, include_device=True).splitlines():
        line = re.sub(r";\s+\w+( = \w+)* = None$", "", line.rstrip())
        if line and not line.lstrip().startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def record(name, function, inputs, numbers, dynamic):
    original = compile_fx._recursive_joint_graph_passes

    def spy(module, *args, **kwargs):
        before = text(module)
        counters.clear()
        module = original(module, *args, **kwargs) or module
        fused = counters["inductor"]["fuse_attention"]
        print(f"# case: {name}", f"# fused: {fused}", f"# calls: {calls(module.graph)}", before, "", sep="\n", flush=True)
        raise Stop

    compile_fx._recursive_joint_graph_passes = spy
    torch._dynamo.reset()
    function = as_model(function)
    try:
        torch.compile(lambda *tensors: function(*tensors, **numbers), dynamic=dynamic)(*inputs)
    except Stop:
        pass
    except Exception as error:  # a formula that cannot be compiled so is left out
        print(name, type(error).__name__, str(error).split("\n")[0], file=sys.stderr)
    finally:
        compile_fx._recursive_joint_graph_passes = original


def main():
    device = sys.argv[1]
    torch.manual_seed(0)
    all_formulas = formulas(device)
    print("# Joint graphs of attention and what PyTorch 2.11 makes of them. Made by tests/scripts/record_attention_training.py.\n")
    for rows, dynamic in ((CPU if device == "cpu" else CUDA, False), (SYMBOLIC, True)):
        for number, dtype in rows:
            function, examples, numbers = all_formulas[number, dtype != "f32"]
            inputs = []
            for example in examples:
                if example.dim() == 0:  # a scale, which models have as a number
                    inputs.append(2.0)
                    continue
                real = torch.ones(example.shape, dtype=example.dtype, device=device)
                if dtype == "bf16" and real.dtype == torch.half:
                    real = real.to(torch.bfloat16)
                inputs.append(real.requires_grad_(example.requires_grad))
            record(", ".join([number, dtype, device] + (["symbolic"] if dynamic else [])), function, inputs, numbers, dynamic)


if __name__ == "__main__":
    main()
