"""Exports the bundled sample models. Run inside this folder with PyTorch 2.11: python export_samples.py

Writes <name>.pt2 together with <name>.inputs.safetensors and <name>.expected.safetensors (tensors t000, t001, ... in the
order of the program's inputs and outputs). Weights and inputs come from fixed seeds. Stack traces in the archives are cut
to file names, so that the result does not depend on where it was made.
"""
import io
import json
import os
import re
import struct
import zipfile

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """Two layers with a normalisation between them."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(24, 48)
        self.norm = nn.LayerNorm(48)
        self.outer = nn.Linear(48, 10)

    def forward(self, x):
        h = F.gelu(self.norm(self.inner(x)))
        return F.log_softmax(self.outer(h), dim=-1)


class Block(nn.Module):
    """A pre-norm encoder block, attention written out down to the head split."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class TinyTransformer(nn.Module):
    """Token and position embedding, one block, and a head that shares the embedding's weight."""

    def __init__(self, words=96, width=32, length=16, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.block = Block(width, heads)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        return self.head(self.norm(self.block(x)))


class Residual(nn.Module):
    def __init__(self, channels, wider, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wider, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(wider)
        self.conv2 = nn.Conv2d(wider, wider, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wider)
        self.skip = nn.Sequential(nn.Conv2d(channels, wider, 1, stride=stride, bias=False), nn.BatchNorm2d(wider))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class TinyResnet(nn.Module):
    """Stem with a max pool, two residual stages, average pool and a linear head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.Sequential(Residual(8, 16, 1), Residual(16, 24, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.stages(self.stem(x))), 1))


def warm_batch_norms(model):
    """Gives running statistics and affine weights values that a wrong formula would not reproduce by luck."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)


def write_safetensors(path, tensors):
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for index, tensor in enumerate(tensors):
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[f"t{index:03}"] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def without_folders(text):
    """Cuts the folders of every file in the stack traces of a program."""
    text = re.sub(r'(File \\")[^"\\]*/site-packages/', r"\1", text)
    return re.sub(r'(File \\")/[^"\\]*/', r"\1", text)


def rewrite(archive):
    """The same archive with plain stack traces and fixed dates, payloads aligned to 64 bytes as torch.save does."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            if "/models/" in entry.filename:
                data = without_folders(data.decode()).encode()
            info = zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0))
            start = out.tell() + 30 + len(entry.filename.encode()) + 4
            padding = -start % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            target.writestr(info, data)
    return out.getvalue()


def export(name, model, inputs):
    model.eval()
    program = torch.export.export(model, inputs)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    with open(name + ".pt2", "wb") as file:
        file.write(rewrite(buffer))
    write_safetensors(name + ".inputs.safetensors", inputs)
    with torch.no_grad():
        write_safetensors(name + ".expected.safetensors", [program.module()(*inputs)])
    print(name, os.path.getsize(name + ".pt2"))


def main():
    torch.manual_seed(20260101)
    export("mlp", Mlp(), (torch.randn(4, 24),))
    export("tiny_transformer", TinyTransformer(), (torch.randint(0, 96, (2, 12)),))
    resnet = TinyResnet()
    warm_batch_norms(resnet)
    export("tiny_resnet", resnet, (torch.randn(2, 3, 32, 32),))


if __name__ == "__main__":
    main()
