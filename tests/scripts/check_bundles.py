"""Loads bundles of `cutaway-cli debug-compile` with PyTorch and runs them.

Run with a Python that has PyTorch and safetensors: python tests/scripts/check_bundles.py CLI MODEL...
Each model is written into a folder of its own; its module is imported, its state dict loaded safely (weights_only), and
called with the inputs beside it. What it returns is held against the CLI's own run of the bundle.
"""
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

cli, models = sys.argv[1], sys.argv[2:]
failed = 0
for number, model in enumerate(models):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / f"bundle_{number}"
        inputs = pathlib.Path(model).parent / "inputs.safetensors"
        given = ["--inputs", str(inputs)] if inputs.exists() else []
        made = subprocess.run([cli, "debug-compile", model, "-o", target, *given], capture_output=True, text=True)
        try:
            assert made.returncode == 0, made.stderr
            torch.load(target / "state_dict.pt", weights_only=True)
            spec = importlib.util.spec_from_file_location(target.name, target / "__init__.py",
                                                          submodule_search_locations=[str(target)])
            package = importlib.util.module_from_spec(spec)
            sys.modules[target.name] = package
            spec.loader.exec_module(package)
            module = package.FxModule()
            values = load_file(target / "inputs.safetensors")
            names = list(inspect.signature(module.forward).parameters)
            with torch.no_grad():
                results = module(*[values[name] for name in names])
            if any(word in (target / "module.py").read_text() for word in ("rand", "bernoulli", "dropout")):
                print(model, "draws random numbers; its results are not compared")
                continue
            expected = target / "expected.safetensors"
            save_file({f"t{i}": one.contiguous() for i, one in enumerate(results)}, expected)
            run = subprocess.run([cli, "run", target, "--inputs", target / "inputs.safetensors", "--expect", expected],
                                 capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            print(model, [tuple(one.shape) for one in results])
        except Exception as error:  # the next one is tried all the same
            failed += 1
            print(model, "FAILED:", error)
sys.exit(failed > 0)
