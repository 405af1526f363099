#!/usr/bin/env python3
"""Records tests/data/packages: a small model as AOTInductor compiles it, once for each release of PyTorch that runs this.

    python3 tests/scripts/record_packages.py tests/data/packages/2.15.pt2 [MODEL.pt2]

The library is stripped (debug information is nine tenths of it) and the archive is compressed, which PyTorch's own is not;
paths of the machine give way to others of the same length, by hand; everything else stays as it was written. MODEL.pt2 is where torch.export.save writes the same model.
"""
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 24)
        self.norm = torch.nn.LayerNorm(24)
        self.second = torch.nn.Linear(24, 12, bias=False)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 12))

    def forward(self, x, mask):
        hidden = self.norm(torch.nn.functional.gelu(self.first(x)))
        scores = (self.second(hidden) * self.scale).masked_fill(mask, -1e4)
        return torch.softmax(scores, -1), hidden.amax(-1)


def smaller(package, target):
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(package) as old, \
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith(".so"):
                library = pathlib.Path(folder, "library.so")
                library.write_bytes(data)
                subprocess.run(["strip", library], check=True)
                data = library.read_bytes()
            new.writestr(zipfile.ZipInfo(entry.filename), data, zipfile.ZIP_DEFLATED)


def main():
    torch.manual_seed(0)
    net, inputs = Net().eval(), (torch.randn(6, 16), torch.zeros(6, 12, dtype=torch.bool))
    batch = torch.export.Dim("batch", min=2, max=64)
    with torch.no_grad():
        program = torch.export.export(net, inputs, dynamic_shapes=({0: batch}, {0: batch}))
        if len(sys.argv) > 2:
            torch.export.save(program, sys.argv[2])
        with tempfile.TemporaryDirectory() as folder:
            package = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/net.pt2")
            smaller(package, sys.argv[1])


main()
