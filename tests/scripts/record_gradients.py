#!/usr/bin/env python3
"""Gradients of an exported program as PyTorch computes them.

    record_gradients.py record MODEL.pt2 OUT.safetensors [INPUTS.safetensors]
    record_gradients.py check MODEL.pt2 CLI [OPTION ...]      compares with `CLI run MODEL --mode training OPTION ...`

The loss is that of `cutaway-cli run --mode training`: the returned number, or the sum of the means of squares of all
floating results. `check` prints the largest difference of any gradient as a share of that gradient's largest element.
Above 1e-4 the gradient is one that cancels out: then both are held to the gradients in float64 (where PyTorch runs the
program in it, else to 1e-5 of the largest gradient of all), and ours may be four times
as far from these as PyTorch's.
"""
import os
import subprocess
import sys
import tempfile

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators of quantized graphs
from safetensors.torch import load_file, save_file


def leaves(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def gradients(path, inputs=None, double=False):
    program = torch.export.load(path)
    module = program.module(check_guards=False) if "check_guards" in program.module.__code__.co_varnames else program.module()
    args, kwargs = program.example_inputs
    if inputs:
        tensors = list(load_file(inputs).values())
        args = torch.utils._pytree.tree_map(lambda a: tensors.pop(0) if isinstance(a, torch.Tensor) else a, args)
    if double:
        module = module.double()
        args, kwargs = torch.utils._pytree.tree_map(
            lambda a: a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a, (args, kwargs))
    torch.manual_seed(0)
    for parameter in module.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    outputs = leaves(module(*args, **kwargs))
    floating = [output for output in outputs if output.is_floating_point()]
    if len(floating) == 1 and floating[0].dim() == 0:
        loss = floating[0]
    else:
        loss = sum(output.double().square().mean() for output in floating)
    found = {"loss": loss.detach().float()}
    if loss.requires_grad:
        loss.backward()
    names = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.grad is not None and id(parameter) not in names:
            names[id(parameter)] = name
            found[name] = parameter.grad.clone().contiguous()
    return found


def check(path, cli, options):
    expected = gradients(path)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "gradients.safetensors")
        run = subprocess.run([cli, "run", path, "--mode", "training", "--gradients", out, *options],
                             capture_output=True, text=True)
        if run.returncode:
            print("fails:", run.stderr.strip().splitlines()[0] if run.stderr else run.returncode)
            return 1
        actual = load_file(out)
    largest = max([grad.abs().max().item() for name, grad in expected.items() if name != "loss" and grad.numel()] or [0])
    worst, where, exact, beyond = 0.0, "", None, ""
    for name, grad in expected.items():
        if name not in actual:
            print("lacks", name)
            return 1
        scale = max(grad.abs().max().item() if grad.numel() else 0, 1e-6 * largest, 1e-30)
        error = (actual[name].double() - grad.double()).abs().max().item() / scale if grad.numel() else 0
        if not error <= 1e-4 and exact is None:
            try:
                exact = gradients(path, double=True)
            except RuntimeError:  # dtypes that the program names do not become float64
                exact = {}
        if not error <= 1e-4 and not exact:
            of_all = error * scale / max(largest, 1e-30)
            if not of_all <= 1e-5:
                beyond += f"; {name} differs by {error:.2g} of its own largest, {of_all:.2g} of all gradients'"
            continue
        if not error <= 1e-4:
            own, theirs = ((value.double() - exact[name].double()).abs().max().item() for value in (actual[name], grad))
            if not own <= 4 * theirs:
                beyond += f"; {name} is {own:.2g} from float64, PyTorch {theirs:.2g}"
            continue
        if not error <= worst:
            worst, where = error, name
    print(f"{len(expected) - 1} gradients, worst {worst:.2g} {where}" +
          ("" if exact is None or beyond else "; some cancel out, and are as near to float64 as PyTorch's" if exact else
           "; some cancel out, less than 1e-5 of the largest gradient apart (no float64 here)") + beyond)
    return 1 if beyond else 0


def main():
    if sys.argv[1] == "record":
        save_file(gradients(sys.argv[2], *sys.argv[4:5]), sys.argv[3])
        return 0
    return check(sys.argv[2], sys.argv[3], sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())
