#!/usr/bin/env python3
"""Where PyTorch and Cutaway disagree whether a call with strange arguments is a call.

    op_arguments_fuzz --list --from 0 --count 20000 | python3 tests/scripts/compare_arguments.py [--ours] [--theirs] [--types]

Needs PyTorch 2.11 on the CPU; the product, its build and its tests do not. Reads a line per call: outcome, call, refusal
or the types of the results. Prints, by op, calls that PyTorch refuses and we run (--ours), that we refuse and PyTorch runs
(--theirs), and those that give results of other types (--types); all three without an option.

A dtype for which PyTorch merely has no kernel counts as neither. PyTorch runs in children: some calls end the process.
"""
import argparse
import collections
import itertools
import os
import re
import resource
import signal
import sys

import op_variants
import record_ops
import torch

LIMIT_SECONDS, LIMIT_BYTES, CHUNK = 5, 12 << 30, 200
TENSOR = re.compile(r"(?<![\w.])(b8|i8|i16|i32|i64|u8|u16|u32|u64|bf16|f16|f32|f64|c32|c64|c128|f8e4m3fn|f8e5m2)\[([-\d, ]*)\](?:\[([-\d, ]*)\])?(<\d+|>0|!|%|\?)?")
DTYPES = {**record_ops.DTYPES, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "c32": torch.complex32,
          "c128": torch.complex128, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
INFINITY, NAN = float("inf"), float("nan")
ODD_FLOATS = [0, 1, NAN, -1, INFINITY, -0.0, -2.5, -INFINITY, 1e30, 0.5, -1e30, 1e-40, 65504, 1e300]
ODD_INTEGERS = [0, 1, -1, 2, 5, -5, 127, -128, 255, 1000, 65535, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def draw(t, i, dtype, how):
    if how != "?":
        return record_ops.draw(t, i, dtype, how)
    bits = record_ops.mix(((t + 1) << 32) + i + 1)
    floating = dtype.is_floating_point or dtype.is_complex
    if dtype != torch.bool and not floating:
        return ODD_INTEGERS[bits % len(ODD_INTEGERS)]
    return ODD_FLOATS[bits % len(ODD_FLOATS)]


def make_tensor(t, dtype, sizes, strides, how):
    """The t-th tensor of a call, by the rule in tests/support/op_samples.h."""
    if strides is None:
        strides = torch.empty(sizes, device="meta").stride()
    stored = [1 if stride == 0 and size > 1 else size for size, stride in zip(sizes, strides)]
    count = 1
    for size in stored:
        count *= size
    if count > 1 << 20:
        raise OverflowError("not made")
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point or dtype == torch.bool else torch.int64
    memory = torch.zeros(1 + sum((size - 1) * stride for size, stride in zip(stored, strides)) if count else 0, dtype=wide)
    for i, place in enumerate(itertools.product(*[range(size) for size in stored])):
        value = draw(t, i, dtype, how)
        if dtype.is_complex:
            value = complex(value, draw(t + record_ops.IMAGINARY, i, dtype, how))
        memory[sum(p * stride for p, stride in zip(place, strides))] = value if wide != torch.int64 else int(value)
    return memory.to(dtype).as_strided(sizes, strides)


def arguments_of(text, function):
    tensors = []

    def build(match):
        dtype, sizes, strides, how = op_variants.parts(match)
        tensors.append(make_tensor(len(tensors), DTYPES[dtype], sizes, strides, how))
        return f"T[{len(tensors) - 1}]"

    code = re.sub(r"\$(\d+)", r"T[\1]", TENSOR.sub(build, text))
    names = {"T": tensors, "torch": torch, "device": torch.device, "inf": INFINITY, "nan": NAN}
    positional, keywords = eval(f"(lambda *a, **k: (list(a), k))({code})", names)  # noqa: S307  our own mutations
    parameters = function._schema.arguments
    positional = [record_ops.spread(value, parameter) for value, parameter in zip(positional, parameters)] + positional[len(parameters):]
    named = {parameter.name: parameter for parameter in parameters}
    return positional, {key: record_ops.spread(value, named[key]) if key in named else value for key, value in keywords.items()}


def type_of(value):
    if not isinstance(value, torch.Tensor):
        return "-"
    return NAMES.get(value.dtype, str(value.dtype)) + str(list(value.shape))


def pytorch(call):
    """("ran", types), ("refused", message) or ("no kernel", message)"""
    name, text = call.split("(", 1)
    try:
        function = record_ops.resolve(name)
        positional, keywords = arguments_of(text[:-1], function)
    except OverflowError as error:
        return "no kernel", str(error)
    except AttributeError as error:
        return "no kernel", str(error)
    except Exception as error:  # noqa: BLE001
        return "refused", repr(error)
    try:
        signal.alarm(LIMIT_SECONDS)
        result = function(*positional, **keywords)
        signal.alarm(0)
        return "ran", "; ".join(type_of(one) for one in record_ops.flat(result))
    except Exception as error:  # noqa: BLE001
        signal.alarm(0)
        return "refused" if record_ops.refusal(error) else "no kernel", str(error).split("\n")[0][:200]


def answers(calls):
    """What PyTorch says of each call; a call that ends the process is "crashed"."""
    done = []
    while len(done) < len(calls):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(writer, "w") as out:
                for call in calls[len(done):len(done) + CHUNK]:
                    print("\t".join(pytorch(call)).replace("\n", " "), file=out, flush=True)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            found = [line.rstrip("\n").split("\t", 1) for line in lines]
        done += found
        if os.waitpid(child, 0)[1] != 0:
            done.append(["crashed", ""])
    return done


def main():
    parser = argparse.ArgumentParser()
    for option in ("ours", "theirs", "types"):
        parser.add_argument("--" + option, action="store_true")
    chosen = parser.parse_args()
    everything = not (chosen.ours or chosen.theirs or chosen.types)
    torch.set_num_threads(1)
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin if line.count("\t") == 2]
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    counts = collections.Counter()
    for (outcome, call, detail), (theirs, said) in zip(rows, answers([row[1] for row in rows])):
        counts[outcome, theirs] += 1
        op = call.split("(", 1)[0]
        if outcome in ("ran", "too large to run") and theirs == "refused":
            groups["ours"][op, re.sub(r"[-\d]+", "#", said)].append((call, said))
        elif outcome.startswith("refused") and theirs == "ran":
            groups["theirs"][op, re.sub(r"[-\d]+", "#", detail)].append((call, detail))
        elif outcome == "ran" and theirs == "ran" and detail != said:
            groups["types"][op, ""].append((call, f"ours {detail}, PyTorch's {said}"))
    for kind, title in (("ours", "PyTorch refuses, we run"), ("theirs", "we refuse, PyTorch runs"), ("types", "other types")):
        if not (everything or getattr(chosen, kind)):
            continue
        print(f"== {title}")
        for (op, _), calls in sorted(groups[kind].items(), key=lambda entry: (entry[0][0], -len(entry[1]))):
            print(f"{len(calls):5} {calls[0][0]}\n          {calls[0][1][:300]}")
    for (ours, theirs), count in sorted(counts.items()):
        print(f"{count:7} {ours} here, {theirs} in PyTorch")


if __name__ == "__main__":
    main()
