"""Exports every layer of torch.nn and every operator of PyTorch's own test tables, and compares what Cutaway makes of them.

    python try_layers.py export FOLDER [--only TEXT...] [--variants fixed dynamic train] [--samples N] [--tables modules ops]
                                [--dtypes float32 bfloat16 int64 ...]
    python try_layers.py check FOLDER CUTAWAY_CLI [--only TEXT...] [--variants ...] [--backends reference cpu]

`export` needs PyTorch 2.11 with its test tables (torch.testing._internal, which imports expecttest) and safetensors; `check`
needs only the folder. A case is one call: a layer of `module_db` with the inputs that PyTorch tests it with, or an operator
of `op_db` with one of its samples. What torch.export refuses counts as not tried. Random calls are checked for running only.

Variants: fixed; dynamic (the first dim of each input is a symbol where torch.export lets it be one, tried at the sample's
size and at one more); train (layers in training mode, run and compiled for training).
"""
import argparse
import json
import logging
import re
import sys
import warnings
from pathlib import Path

from try_exports import attempt

VARIANTS = ["fixed", "dynamic", "train"]


def plain(value):
    """Lists and named tuples as tuples, which torch.export can write."""
    from torch.utils._pytree import tree_leaves
    return tuple(tree_leaves(value)) if isinstance(value, (tuple, list, dict)) else value


def split(args, kwargs):
    """The call's leaves, how they are put together again, and which of them are tensors: the inputs."""
    import torch
    from torch.utils._pytree import tree_flatten
    leaves, spec = tree_flatten((args, kwargs))
    return leaves, spec, [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]


def calling(function, args, kwargs):
    """A module that calls the function with tensors in place of the call's own, and these."""
    import torch
    from torch.utils._pytree import tree_unflatten
    leaves, spec, where = split(args, kwargs)

    class Call(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = function if isinstance(function, torch.nn.Module) else None

        def forward(self, *tensors):
            filled = list(leaves)
            for place, tensor in zip(where, tensors):
                filled[place] = tensor
            positional, keywords = tree_unflatten(filled, spec)
            return plain(function(*positional, **keywords))

    return Call(), [leaves[place].detach() for place in where]


def module_cases(variant, samples):
    """(name, module, inputs) for each layer and each input that PyTorch tests it with."""
    import torch
    from torch.testing._internal.common_modules import module_db
    training = variant == "train"
    for info in module_db:
        try:
            inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=training)
        except Exception as error:
            print(f"{info.name}: no inputs: {error}", flush=True)
            continue
        for number, one in enumerate(inputs[:samples]):
            if one.forward_input is None:
                continue
            torch.manual_seed(1)
            layer = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).train(training)
            module, tensors = calling(layer, one.forward_input.args, one.forward_input.kwargs)
            yield f"{info.name}.{number}", module.train(training), tensors


def operator_cases(variant, samples, wanted):
    """The same for each operator and dtype that it has, with samples from the first to the last of its table."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    if variant == "train":
        return
    for op, dtype in ((op, getattr(torch, name)) for op in op_db for name in wanted):
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if name.startswith(("sparse", "_refs", "masked.", "jiterator", "to_sparse")) or dtype not in op.dtypes:
            continue
        try:
            every = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        except Exception as error:
            print(f"{name}: no samples: {error}", flush=True)
            continue
        for number in sorted({round(i * (len(every) - 1) / max(1, samples - 1)) for i in range(samples)}) if every else []:
            module, tensors = calling(op.op, (every[number].input, *every[number].args), every[number].kwargs)
            yield f"{name}.{number}" + (f".{str(dtype)[6:]}" if dtype != torch.float32 else ""), module, tensors


def longer(tensor):
    """One more row, a copy of the first."""
    import torch
    return torch.cat([tensor, tensor[:1]]) if tensor.dim() and tensor.shape[0] > 1 else tensor


def draws(program, inputs):
    """Whether what the program gives depends on the seed, or on memory as it finds it."""
    import torch
    if any("empty" in str(node.target) for node in program.graph.nodes):
        return True
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results = program.module()(*[tensor.clone() for tensor in inputs])
        runs.append([value for value in (results if isinstance(results, tuple) else (results,)) if isinstance(value, torch.Tensor)])
    return any(not torch.equal(a.nan_to_num(), b.nan_to_num()) if a.is_floating_point() else not torch.equal(a, b) for a, b in zip(*runs))


def export_case(module, tensors, variant, folder):
    import torch
    from safetensors.torch import save_file
    dims = None
    if variant == "dynamic":
        if not any(tensor.dim() and tensor.shape[0] > 1 for tensor in tensors):
            return False
        dims = (tuple({0: torch.export.Dim.AUTO} if tensor.dim() and tensor.shape[0] > 1 else None for tensor in tensors),)
    with torch.set_grad_enabled(variant == "train"):
        program = torch.export.export(module, tuple(tensors), dynamic_shapes=dims)
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, folder / "model.pt2")
    tried = [tensors]
    if variant == "dynamic":
        if not program.range_constraints:  # the exporter has specialized all
            return False
        more = [longer(tensor) for tensor in tensors]
        try:
            program.module()(*[tensor.clone() for tensor in more])
            tried.append(more)
        except Exception:  # the exporter has specialized this size
            pass
    with torch.no_grad():
        random = draws(program, tensors)
        for number, inputs in enumerate(tried):
            save_file({f"{i:04}": t.resolve_conj().resolve_neg().contiguous().clone() for i, t in enumerate(inputs)}, folder / f"inputs_{number}.safetensors")
            if random:
                continue
            results = module(*[t.clone() for t in inputs])
            results = results if isinstance(results, tuple) else (results,)
            save_file({f"{i:04}": t.detach().resolve_conj().resolve_neg().contiguous().clone() for i, t in enumerate(results) if isinstance(t, torch.Tensor)},
                      folder / f"expected_{number}.safetensors")
    (folder / "kind.json").write_text(json.dumps({"variant": variant, "sizes": len(tried), "random": random}))
    return True


def export(arguments):
    import torch
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    for variant in arguments.variants:
        for table in arguments.tables:
            cases = module_cases(variant, arguments.samples) if table == "modules" else operator_cases(variant, arguments.samples, arguments.dtypes)
            for name, module, tensors in cases:
                folder = Path(arguments.folder) / re.sub(r"[^A-Za-z0-9_.]", "_", name) / variant
                if (arguments.only and not any(text in name for text in arguments.only)) or folder.exists():
                    continue
                try:
                    torch.manual_seed(0)
                    if not export_case(module, tensors, variant, folder):
                        folder.mkdir(parents=True, exist_ok=True)
                except Exception as error:
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / "failed.txt").write_text(f"{type(error).__name__}: {error}")


def check(arguments):
    counts, results = {}, {}
    for folder in sorted(Path(arguments.folder).glob("*/*/kind.json")):
        folder = folder.parent
        name, variant = folder.parent.name, folder.name
        if variant not in arguments.variants or (arguments.only and not any(text in name for text in arguments.only)):
            continue
        facts, model = json.loads((folder / "kind.json").read_text()), str(folder / "model.pt2")
        jobs = []
        for backend in arguments.backends:
            for number in range(facts["sizes"]):
                command = [arguments.cli, "run", model, "--backend", backend, "--inputs", str(folder / f"inputs_{number}.safetensors")]
                jobs.append((f"{backend} {number}", command + ([] if facts["random"] else ["--expect", str(folder / f"expected_{number}.safetensors")])))
        if variant == "train":
            jobs.append(("training", [arguments.cli, "compile", model, "--mode", "training"]))
        for what, command in jobs:
            code, text = attempt(command, arguments.seconds)
            good = counts.setdefault((variant, what.split()[0]), [0, 0])
            good[1] += 1
            if code == 0:
                good[0] += 1
                continue
            results[f"{name} {variant} {what}"] = text[:1000]
            print(f"{name} {variant} {what}: {code} {text[:arguments.width]}", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))
    for (variant, what), (good, of) in counts.items():
        print(f"{variant:9} {what:10} {good} of {of}")
    return 0 if all(good == of for good, of in counts.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "check"])
    parser.add_argument("folder")
    parser.add_argument("cli", nargs="?")
    parser.add_argument("--only", nargs="+", help="cases whose name holds one of these")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["fixed", "dynamic"])
    parser.add_argument("--tables", nargs="+", choices=["modules", "ops"], default=["modules", "ops"])
    parser.add_argument("--samples", type=int, default=3, help="of each layer and each operator")
    parser.add_argument("--dtypes", nargs="+", default=["float32"], help="of operators; layers have float32")
    parser.add_argument("--backends", nargs="*", default=["reference", "cpu"])
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    return export(arguments) if arguments.what == "export" else check(arguments)


if __name__ == "__main__":
    sys.exit(main())
