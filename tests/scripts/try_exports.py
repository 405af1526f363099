#!/usr/bin/env python3
"""Exports some four hundred small programs with the newest PyTorch and tries everything that Cutaway does with each.

    try_exports.py export FOLDER [--only TEXT...]       needs PyTorch and safetensors
    try_exports.py check FOLDER CUTAWAY_CLI [--only TEXT...] [--tries TRY...] [--json FILE]

The cases stand in export_cases.py, export_programs.py, export_kinds.py and export_arguments.py. `export` writes a folder for each: model.pt2, inputs and what eager
gives for them, gradients where the case has some. `check` needs only the folders; `runnable` among its tries needs PyTorch.
A program that torch.export itself refuses counts as not tried. Status 1 where a try failed.
"""
import argparse
import json
import logging
import re
import shutil
import subprocess
import sys
import traceback
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TRIES = ["info", "text", "reference", "cpu", "refused", "frozen", "training", "training-cpu", "runnable"]


def plain(tensor):
    """As safetensors can write it."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().clone()


def saved(values):
    """Results as a safetensors file holds them, numbers as tensors; strings and None have no place in it."""
    import torch
    from torch.utils._pytree import tree_leaves
    found = {}
    for number, value in enumerate(tree_leaves(values)):
        if isinstance(value, (bool, int, float)):
            value = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        if isinstance(value, torch.Tensor):
            found[f"output_{number}"] = plain(value)
    return found


def tensors(values):
    from torch.utils._pytree import tree_leaves
    import torch
    return {f"{number:04}": plain(value) for number, value in enumerate(leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))}


def without_folders(model):
    """Source files in the program's stack traces, named without the folders of the machine that exported it."""
    with zipfile.ZipFile(model) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(model, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            if name.endswith(".json"):
                data = re.sub(rb'/[^\s"\\]*/(?=(torch|scripts)/[^\s"\\]*\.py)', b"", data)
            archive.writestr(zipfile.ZipInfo(name), data)


def module_of(case):
    import torch

    class Call(torch.nn.Module):
        """The function; what is trained is a factor of its first input."""

        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(())) if case.train else None

        def forward(self, *inputs):
            if self.scale is not None:
                inputs = (inputs[0] * self.scale, *inputs[1:])
            return case.function(*inputs)

    return case.function if isinstance(case.function, torch.nn.Module) else Call()


def fresh(inputs):
    import torch
    from torch.utils._pytree import tree_map
    return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, inputs)


def export_case(case, folder):
    import torch
    from safetensors.torch import save_file
    from record_gradients import gradients
    module = module_of(case)
    dynamic = case.dynamic
    if dynamic is not None:
        dims = list(dynamic) if isinstance(dynamic, list) else [dynamic] + [None] * (len(case.inputs) - 1)
        dynamic = tuple(dims) if isinstance(case.function, torch.nn.Module) else (tuple(dims),)
    program = torch.export.export(module, fresh(case.inputs), dynamic_shapes=dynamic)
    if case.decompose is not None:
        program = program.run_decompositions() if case.decompose is True else program.run_decompositions(dict(case.decompose))
    folder.mkdir(parents=True)
    torch.export.save(program, folder / "model.pt2")
    without_folders(folder / "model.pt2")
    refused = []
    state = {name: value.clone() for name, value in module.state_dict().items()}
    for number, inputs in enumerate([case.inputs, *case.runs]):
        save_file(tensors(inputs), folder / f"inputs_{number}.safetensors")
        try:
            program.module()(*fresh(inputs))
        except Exception as error:  # a guard of the program: Cutaway has to refuse them, too
            if number == 0:
                raise
            refused.append([number, str(error)])
            continue
        module.load_state_dict(state)
        for name, buffer in module.named_buffers():
            if name not in state:
                buffer.zero_()
        with torch.no_grad():
            results = module(*fresh(inputs))
        save_file(saved(results), folder / f"expected_{number}.safetensors")
    if case.train:
        save_file(gradients(str(folder / "model.pt2")), folder / "gradients.safetensors")
    (folder / "kind.json").write_text(json.dumps({"sizes": 1 + len(case.runs), "train": case.train, "refused": refused, "options": case.options}))


def export(arguments):
    import torch
    import export_arguments  # these three add their own to the list
    import export_cases
    import export_kinds
    import export_programs
    assert export_arguments and export_kinds and export_programs
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    for case in export_cases.CASES:
        folder = Path(arguments.folder) / case.name
        if (arguments.only and not any(text in case.name for text in arguments.only)) or folder.exists():
            continue
        try:
            export_case(case, folder)
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "failed.txt").write_text("".join(traceback.format_exception(error)))
            print(f"not tried: {case.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)


def jobs_of(folder, cli):
    """(try, command) for everything that is done with a case."""
    facts, model = json.loads((folder / "kind.json").read_text()), str(folder / "model.pt2")
    refused = [number for number, _ in facts["refused"]]
    jobs = [("info", [cli, "info", model]), ("text", [cli, "text", model])]
    for number in range(facts["sizes"]):
        given = ["--inputs", str(folder / f"inputs_{number}.safetensors")]
        if number in refused:
            jobs += [("refused", [cli, "run", model, "--backend", backend, *given]) for backend in ("reference", "cpu")]
            continue
        given += [*facts["options"], "--expect", str(folder / f"expected_{number}.safetensors")]
        jobs += [("reference", [cli, "run", model, *given]), ("cpu", [cli, "run", model, "--backend", "cpu", *given]),
                 ("frozen", [cli, "run", model, "--backend", "cpu", "--freeze", *given])]
    if facts["train"]:
        given = ["--mode", "training", "--expect-gradients", str(folder / "gradients.safetensors")]
        jobs += [("training", [cli, "run", model, *given]), ("training-cpu", [cli, "run", model, "--backend", "cpu", *given])]
    jobs.append(("runnable", [sys.executable, str(Path(__file__).with_name("check_runnable.py")), cli, model]))
    return jobs


def attempt(command, seconds):
    """(exit status or "timeout", what was printed in one line)"""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, text=True, errors="replace")
        return done.returncode, " | ".join(line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip())
    except subprocess.TimeoutExpired:
        return "timeout", f"more than {seconds} s"


def outcome(code, text):
    """Of inputs that the program forbids: 0 where the run was refused with a sentence, as it has to be."""
    if code == 0:
        return "runs, though the program forbids it"
    return 0 if code == 1 and text.startswith("cutaway-cli: ") and "bug in Cutaway" not in text else "not refused with a sentence"


def check(arguments):
    folders = [path.parent for path in sorted(Path(arguments.folder).glob("*/kind.json"))
               if not arguments.only or any(text in path.parent.name for text in arguments.only)]
    counts, failures, whole = {}, {}, 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        def one(folder):
            results = [(what, *attempt(command, arguments.seconds)) for what, command in jobs_of(folder, arguments.cli) if what in arguments.tries]
            return folder, [(what, outcome(code, text) if what == "refused" else code, text) for what, code, text in results]
        for folder, results in pool.map(one, folders):
            whole += all(code == 0 for _, code, _ in results)
            for what, code, text in results:
                count = counts.setdefault(what, [0, 0])
                count[1] += 1
                count[0] += code == 0
                if code != 0:
                    failures.setdefault(folder.name, []).append([what, code, text])
                    differs = re.search(r"\S+ +[^|]*DIFFERS[^|]*", text)
                    print(f"{folder.name} {what}: {code} {(differs.group(0) if differs else text)[:arguments.width]}", flush=True)
    for what, (good, of) in counts.items():
        print(f"{what:13} {good} of {of}")
    untried = len(list(Path(arguments.folder).glob("*/failed.txt")))
    print(f"{whole} of {len(folders)} programs pass all; {untried} are refused by torch.export")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(failures, indent=1))
    return 0 if whole == len(folders) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "check"])
    parser.add_argument("folder")
    parser.add_argument("cli", nargs="?")
    parser.add_argument("--only", nargs="+", help="cases whose name holds one of these")
    parser.add_argument("--tries", nargs="+", choices=TRIES, default=TRIES[:-1])
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--width", type=int, default=240)
    parser.add_argument("--json", help="writes what failed, whole")
    arguments = parser.parse_args()
    return export(arguments) or 0 if arguments.what == "export" else check(arguments)


if __name__ == "__main__":
    sys.exit(main())
