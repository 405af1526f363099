#!/usr/bin/env python3
"""Records forward mode of a small model from PyTorch: python3 record_jvp.py tests/data/jvp

model.pt2, inputs.safetensors with a direction for every parameter (NAME.tangent), and expected.safetensors with the
results and their tangents as torch.func.jvp computes them. Attention runs in its math form, the only one with a formula.
"""
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.mix = nn.Linear(8, 24)
        self.rows = nn.LayerNorm(8)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        x = self.pool(torch.relu(self.norm(self.conv(x))))
        rows = self.rows(x.flatten(2).reshape(x.shape[0], -1, 8))
        heads = [part.unflatten(2, (2, 4)).transpose(1, 2) for part in self.mix(rows).chunk(3, 2)]
        seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        rows = rows + nn.functional.gelu(seen.transpose(1, 2).flatten(2))
        return torch.log_softmax(self.out(rows), 2), rows.amax(1), rows.argmax(2)


def main(folder):
    torch.manual_seed(0)
    model = Model().eval()
    x = torch.randn(2, 2, 8, 8)
    program = torch.export.export(model, (x,))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # which names files of the machine that it ran on
    torch.export.save(program, folder + "/model.pt2")
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    directions = {name: torch.randn_like(value) for name, value in parameters.items()}
    with sdpa_kernel(SDPBackend.MATH):
        results, tangents = torch.func.jvp(
            lambda moved: torch.func.functional_call(model, moved, (x,)), (parameters,), (directions,)
        )
    inputs = {"x": x} | {name + ".tangent": value for name, value in directions.items()}
    save_file(inputs, folder + "/inputs.safetensors")
    expected = {f"output_{i}": value for i, value in enumerate(results)}
    expected |= {f"output_{i}.tangent": value for i, value in enumerate(tangents)}
    save_file({name: value.detach().clone().contiguous() for name, value in expected.items()},
              folder + "/expected.safetensors")


main(sys.argv[1])
