#!/usr/bin/env python3
"""Records what PyTorch's ViewAndMutationMeta says of small functions, for tests/engine/training_metadata_test.cpp.

Needs PyTorch 2.11:  python tests/scripts/record_metadata.py
Writes tests/data/metadata.json: of each function its graph as torch.export sees it (short FX text), the inputs that are
differentiated, and PyTorch's record.
"""
import json
import os

import torch
from torch._functorch._aot_autograd.collect_metadata_analysis import run_functionalized_fw_and_collect_metadata
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch._subclasses import FakeTensorMode

from record_joint import Wrapped, short_form


def scaled(x, w):
    return x * w


def several(x, w):
    y = x * w
    return y, y.argmax(1)


def write(x, w):
    x.add_(1.0)
    return x * w


def write_and_return(x, w):
    x.add_(w)
    return x, x * w


def write_frozen_and_return(x, w):
    x.mul_(2.0)
    return x, x * w


FUNCTIONS = {
    "value": (scaled, ["w"]),
    "nothing requires a gradient": (scaled, []),
    "integers": (several, ["w"]),
    "the inputs": (lambda x, w: (x * w, w, x), ["w"]),
    "views of inputs": (lambda x, w: (x * w, w.view(24), x.t()), ["w"]),
    "view of a view": (lambda x, w: (x * w, w.view(24).view(2, 12)), ["w"]),
    "parts of an input": (lambda x, w: w.split(3, 1), ["w"]),
    "parts and a view": (lambda x, w: (*w.split(3, 1), w.view(24), x * w), ["w"]),
    "a view of a part": (lambda x, w: (w.unbind(0)[1].view(2, 3), x * w), ["w"]),
    "a part without a gradient": (lambda x, w: (x.unbind(0)[0], x * w), ["w"]),
    "view of an intermediate": (lambda x, w: ((x * w).view(24),), ["w"]),
    "parts of an intermediate": (lambda x, w: (x * w).split(3, 1), ["w"]),
    "a value twice": (lambda x, w: (lambda y: (y, y))(x * w), ["w"]),
    "detached input": (lambda x, w: (w.detach(), x * w), ["w"]),
    "detached": (lambda x, w: ((x * w).detach(), w * 2), ["w"]),
    "written": (write, ["w"]),
    "written, wanted": (write_and_return, ["x", "w"]),
    "written, returned": (write_frozen_and_return, ["w"]),
}


def record(name):
    function, wanted = FUNCTIONS[name]
    inputs = {"x": torch.ones(4, 6), "w": torch.ones(4, 6)}
    exported = torch.export.export(Wrapped(function), tuple(inputs.values()), strict=False)
    text = short_form(exported.graph)

    def flat(*args):
        out = function(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    mode = FakeTensorMode()
    fake = [mode.from_tensor(value.requires_grad_(key in wanted)) for key, value in inputs.items()]
    descriptors = [PlainAOTInput(i) for i in range(len(fake))]
    with mode:
        meta = run_functionalized_fw_and_collect_metadata(
            flat, flat_args_descs=descriptors, keep_input_mutations=True, is_train=bool(wanted))(
                *[each.clone().detach().requires_grad_(each.requires_grad) * 1 if each.requires_grad else each for each in fake])
    return {
        "forward": text,
        "gradients": [f"args_{list(inputs).index(name)}" for name in wanted],
        "input_info": [{"requires_grad": i.requires_grad, "mutates_data": i.mutates_data,
                        "mutation_type": i.mutation_type.name} for i in meta.input_info],
        "output_info": [{"output_type": o.output_type.name, "base_idx": -1 if o.base_idx is None else o.base_idx,
                         "requires_grad": o.requires_grad} for o in meta.output_info],
        "num_mutated_inp_runtime_indices": meta.num_mutated_inp_runtime_indices,
        "num_forward_returns": meta.num_forward_returns,
        "num_tangents": len(meta.traced_tangents),
    }


def main():
    path = os.path.join(os.path.dirname(__file__), "..", "data", "metadata.json")
    with open(path, "w", encoding="utf-8") as file:
        rows = [json.dumps(name) + ": " + json.dumps(record(name)) for name in FUNCTIONS]
        file.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
