#!/usr/bin/env python3
"""Records what PyTorch makes of in-place programs: tests/cases/functionalize.txt. Each case is the traced program with its
mutations as FX text, its inputs, and what running it returns and leaves in the inputs. Needs PyTorch; the test does not.

usage: record_functionalize.py [OUTPUT]"""
import pathlib
import sys

import torch
from torch.fx.experimental.proxy_tensor import make_fx

CASES = []


def case(*shapes):
    def add(function):
        CASES.append((function, shapes))
        return function
    return add


@case((3,))
def add_to_input(x):
    x.add_(1)
    return x * 2


@case((3,))
def returns_the_mutated_input(x):
    x.mul_(2)
    return x


@case((3,))
def twice(x):
    x.add_(1)
    y = x * 2
    x.mul_(3)
    return y + x


@case((2, 3))
def through_a_view(x):
    y = x.clone()
    y.view(6).add_(1)
    return y


@case((2, 3))
def view_of_a_view(x):
    y = x.clone()
    row = y.t()[1]
    row.mul_(5)
    return y, row


@case((4, 3))
def slice_of_an_input(x):
    x[1:3].add_(10)
    return x.sum(0)


@case((4, 3))
def select_and_fill(x):
    x[2].fill_(7)
    return x + 0


@case((4, 4))
def diagonal(x):
    y = x * 1
    y.diagonal().zero_()
    return y


@case((2, 3))
def other_live_view(x):
    y = x.clone()
    flat = y.view(6)
    first = y[0]
    y.add_(1)
    return flat, first


@case((2, 6))
def parts_of_a_split(x):
    y = x.clone()
    a, b, c = y.split(2, 1)
    b.mul_(3)
    a.copy_(c)
    return y, a, b


@case((3, 2))
def unbound(x):
    y = x.clone()
    first, second, third = y.unbind(0)
    second.add_(first)
    return y, third


@case((2, 3), (2, 3))
def two_inputs(x, y):
    x.add_(y)
    y.mul_(x)
    return x - y


@case((2, 3), (3,))
def copies_with_broadcast(x, y):
    x.copy_(y)
    return x * 2


@case((2, 3))
def squeezed(x):
    y = x.unsqueeze(0).clone()
    y.squeeze(0).neg_()
    return y


@case((2, 3))
def permuted(x):
    y = x.clone()
    y.permute(1, 0).select(0, 2).fill_(1)
    return y.permute(1, 0)


@case((6,))
def strided(x):
    y = x.clone()
    torch.as_strided(y, (2, 2), (3, 1), 1).add_(100)
    return y


@case((2, 3))
def detached(x):
    y = x.clone().detach_()
    y.add_(1)
    return y


@case((5,))
def overlapping_slices(x):
    y = x.clone()
    a, b = y[0:3], y[2:5]
    a.add_(1)
    b.mul_(2)
    return y, a, b


@case((3,))
def mutated_then_viewed(x):
    y = x + 1
    y.relu_()
    z = y.view(3, 1)
    z.sub_(2)
    return y, z


@case((4,))
def view_of_an_input_returned(x):
    v = x.view(2, 2)
    x.add_(1)
    return v


@case((2, 2))
def chained_in_place(x):
    return x.add_(1).mul_(2).t().sub_(3)


@case((3,))
def comparison_result(x):
    y = x > 0
    y.logical_not_()
    return y


def numbers(tensor):
    flat = [float(v) for v in tensor.reshape(-1)]
    return "%s: %s" % (list(tensor.shape), " ".join("%.9g" % v for v in flat))


def inputs_for(shapes):
    made = []
    for number, shape in enumerate(shapes):
        count = 1
        for size in shape:
            count *= size
        made.append((torch.arange(count, dtype=torch.float32).reshape(shape) - 2 + number) * 0.5)
    return made


def record(function, shapes):
    module = make_fx(function)(*inputs_for(shapes))
    text = module.print_readable(print_output=False, include_stride=False, include_device=False)
    functional = make_fx(torch.func.functionalize(function))(*inputs_for(shapes))
    copies = sum(1 for node in functional.graph.nodes if node.target is torch.ops.aten.copy_.default)
    inputs = inputs_for(shapes)
    lines = ["# case: " + function.__name__, "# copies: %d" % copies]
    lines += ["# input " + numbers(value) for value in inputs]
    results = function(*inputs)
    lines += ["# left " + numbers(value) for value in inputs]
    lines += ["# result " + numbers(value) for value in (results if isinstance(results, tuple) else (results,))]
    body = [line for line in text.split("\n") if line.strip() and "# File" not in line and "No stacktrace" not in line]
    return "\n".join(lines + [line.rstrip() for line in body]) + "\n"


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "cases" / "functionalize.txt"
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    output.write_text("# Made by tests/scripts/record_functionalize.py with PyTorch %s.\n\n" % torch.__version__.split("+")[0] +
                      "\n".join(record(function, shapes) for function, shapes in CASES))


if __name__ == "__main__":
    main()
