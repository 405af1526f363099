"""Exports tests/data/counter.pt2: a model whose result depends on a buffer that each run writes to.

usage: export_counter.py OUTPUT.pt2   (needs PyTorch 2.11)
"""
import sys

import torch


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(3))

    def forward(self, x):
        self.steps.add_(1)
        return x * self.steps


program = torch.export.export(Counter(), (torch.ones(2, 3),))
for node in program.graph.nodes:
    node.meta.pop("stack_trace", None)  # paths of whoever exports
torch.export.save(program, sys.argv[1])
