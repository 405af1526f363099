#!/usr/bin/env python3
"""Records what PyTorch computes for every op sample, for tests/engine/ops_recorded_test.cpp.

    op_samples_dump | python3 tests/scripts/record_ops.py tests/data/ops

Needs PyTorch 2.11 on the CPU; the product, its build and its tests do not. Inputs are not stored: both sides draw them
by the rule in tests/support/op_samples.h. Written files:
    results.safetensors  one tensor "OP#N/R" per result R of sample N, and in its metadata
                         "sample OP#N" = the sample's text, "strides OP#N/R" = strides if not row-major
    expansions.txt       for ops that the compiler expands: the ops of the expansion in order, with literal arguments
Samples that PyTorch refuses are listed on stderr.
"""
import json
import os
import re
import struct
import sys
import warnings

import torch
import torch._inductor.inductor_prims  # noqa: F401  registers prims of the compiler
import torch._inductor.lowering  # noqa: F401  some decompositions look into it

warnings.filterwarnings("ignore")
MASK = (1 << 64) - 1


def mix(z):
    z = z * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def draw(spec, dtype, i):
    r = mix(((spec["tensor"] + 1) << 32) + i + 1)
    floating = dtype.is_floating_point or dtype.is_complex
    how, bound = spec["draw"], spec["bound"]
    if dtype == torch.bool:
        return r & 1
    if how == "distinct":
        value = 77 * i % 513 - 256
        return value / 64 if floating else value
    if floating:
        if how == "positive":
            return (r % 256 + 1) / 64
        if how == "below":
            return (r % (128 * bound - 1) - (64 * bound - 1)) / 64
        return (r % 513 - 256) / 64
    if how == "positive":
        return r % 8 + 1
    if how == "below":
        return r % bound
    unsigned = dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    return r % 9 if unsigned else r % 9 - 4


def make_tensor(spec):
    dtype = getattr(torch, spec["dtype"])
    sizes, strides = spec["sizes"], spec["strides"]
    stored = [1 if stride == 0 and size > 1 else size for size, stride in zip(sizes, strides)]
    count = 1
    for size in stored:
        count *= size
    values = torch.tensor([draw(spec, dtype, i) for i in range(count)], dtype=torch.float64).reshape(stored)
    out = torch.empty_strided(stored, strides, dtype=dtype)
    out.copy_(values)
    return out.as_strided(sizes, strides)


def value_of(node):
    if isinstance(node, list):
        return [value_of(item) for item in node]
    if isinstance(node, dict):
        if "tensor" in node:
            return make_tensor(node)
        if "float" in node:
            return float(node["float"])
        if "torch" in node:
            return getattr(torch, node["torch"])
        return torch.device(node["device"])
    return node


def resolve(name):
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def spread(value, parameter):
    """A single number for an int[n], which schemas allow and the Python binding does not always."""
    return [value] if isinstance(value, int) and "List[int]" in str(parameter.type) else value


def arguments_of(sample, function):
    parameters = function._schema.arguments
    positional = [value_of(a["value"]) for a in sample["arguments"] if a["name"] is None]
    positional = [spread(value, parameter) for value, parameter in zip(positional, parameters)]
    named = {parameter.name: parameter for parameter in parameters}
    keywords = {a["name"]: spread(value_of(a["value"]), named[a["name"]]) for a in sample["arguments"] if a["name"] is not None}
    return positional, keywords


def flat(result):
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


NAMES = {
    torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.complex64: "C64", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}


def write_safetensors(path, tensors, metadata):
    header, blobs, at = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors:
        packed = torch.empty(tensor.numel(), dtype=tensor.dtype)
        packed.copy_(tensor.reshape(-1))
        data = packed.view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        blobs.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def literal(value):
    if isinstance(value, torch.fx.Node):
        return "%"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, torch.device):
        return value.type
    return repr(value) if not isinstance(value, (torch.dtype, torch.memory_format, torch.layout)) else str(value)


def expansion(function, positional, keywords, table):
    """The call's graph after decomposition, one op per line; None if it cannot be traced."""
    from torch.fx.experimental.proxy_tensor import make_fx

    leaves, spec = torch.utils._pytree.tree_flatten((positional, keywords))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def run(*tensors):
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(filled, spec)
        return function(*args, **kwargs)

    graph = make_fx(run, decomposition_table=table, tracing_mode="fake")(*[leaves[i] for i in places])
    graph.graph.eliminate_dead_code()
    lines = []
    for node in graph.graph.nodes:
        if node.op != "call_function" or "getitem" in str(node.target):
            continue
        args = [literal(a) for a in node.args]
        schema = getattr(node.target, "_schema", None)
        given = {k: literal(v) for k, v in node.kwargs.items()}
        words = [f"{a.name}={given[a.name]}" for a in schema.arguments if a.name in given] if schema else []
        target = re.sub(r"^(aten|prims)\.", lambda m: m.group(0), str(node.target))
        lines.append(f"{target}({', '.join(args + words)})")
    return lines


def main():
    from torch._inductor.decomposition import select_decomp_table

    folder = sys.argv[1]
    table = select_decomp_table()
    tensors, metadata, expansions = [], {}, []
    for line in sys.stdin:
        sample = json.loads(line)
        name = sample["name"]
        try:
            function = resolve(sample["op"])
            positional, keywords = arguments_of(sample, function)
            results = flat(function(*positional, **keywords))
        except Exception as error:  # noqa: BLE001
            print(f"{name}: {sample['sample']}: {str(error).splitlines()[0][:160]}", file=sys.stderr)
            continue
        metadata[f"sample {name}"] = sample["sample"]
        for number, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                continue
            key = f"{name}/{number}"
            row_major = torch.empty(result.shape, device="meta").stride()
            if tuple(result.stride()) != tuple(row_major):
                metadata[f"strides {key}"] = ",".join(map(str, result.stride()))
            if sample["random"]:
                result = torch.zeros_like(result)
            tensors.append((key, result))
        if sample["expands"]:
            try:
                positional, keywords = arguments_of(sample, function)
                lines = expansion(function, positional, keywords, table)
            except Exception as error:  # noqa: BLE001
                print(f"{name}: not traced: {str(error).splitlines()[0][:160]}", file=sys.stderr)
                continue
            expansions.append(f"# {name}: {sample['sample']}\n" + "".join(f"{one}\n" for one in lines))
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "results.safetensors"), tensors, metadata)
    with open(os.path.join(folder, "expansions.txt"), "w") as file:
        file.write("\n".join(expansions))


if __name__ == "__main__":
    main()
