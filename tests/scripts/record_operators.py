#!/usr/bin/env python3
"""Records what torchvision and torchao make of small calls of the operators that resources/operators defines.

    record_operators.py FOLDER     writes NAME.py (the call), NAME.inputs.safetensors and NAME.expected.safetensors

Needs PyTorch, torchvision, torchao and safetensors; tests need none of them. tests/data/operators was made with PyTorch 2.15.0,
torchvision 0.29.2 and torchao 0.18.0. torchao's wheel has no CPU kernels of its operators: expected is what the graph
computes that its own fusion (prototype/inductor/fx_passes/qsdpa_fusion.py, quantization/pt2e/inductor_passes/x86.py)
replaces by them.
"""
import sys

import torch
import torchao.quantization.pt2e.quantize_pt2e  # registers quantized_decomposed
import torchvision
from safetensors.torch import save_file

qd = torch.ops.quantized_decomposed
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.int8: "i8"}


def attention(q, k, v, mask, scale, qs, qz, ks, kz, vs, vz, as_, az, os, oz):
    d = lambda x, s, z: qd.dequantize_per_tensor(x, s, z, 0, 255, torch.uint8)
    w = lambda x, s, z: qd.quantize_per_tensor(x, s, z, 0, 255, torch.uint8)
    scores = d(q, qs, qz) @ d(k, ks, kz).transpose(-2, -1)
    scores = scores / q.shape[-1] ** 0.5 if scale is None else scores * scale
    if mask is not None:
        scores = scores + mask
    return w(d(w(torch.softmax(scores, -1), as_, az), as_, az) @ d(v, vs, vz), os, oz)


def samples():
    g = torch.Generator().manual_seed(7)
    for name, dtype, size in (("roi_pool_backward", torch.float32, 6), ("roi_pool_backward_f64", torch.float64, 5)):
        x = torch.randn(2, 3, size, 7, generator=g, dtype=dtype)
        rois = torch.tensor([[0, 0, 0, 4, 4], [1, 1, 2, 6, 5], [0, 5, 5, 4, 4]], dtype=dtype)
        out, argmax = torch.ops.torchvision.roi_pool(x, rois, 1.0, 2, 3)
        grad = torch.randn(out.shape, generator=g, dtype=dtype)
        numbers = (1.0, 2, 3, 2, 3, size, 7)
        yield (name, "torchvision._roi_pool_backward.default", [("grad", grad), ("rois", rois), ("argmax", argmax)], numbers,
               torch.ops.torchvision._roi_pool_backward(grad, rois, argmax, *numbers))
    q, k, v = (torch.randint(0, 256, (1, 2, 5, 8), generator=g, dtype=torch.uint8) for _ in range(3))
    mask = torch.randn(1, 1, 5, 5, generator=g)
    scales = (0.02, 120, 0.03, 130, 0.05, 110, 1 / 255, 0, 0.04, 128)
    for name, m, scale in (("qscaled_dot_product", None, None), ("qscaled_dot_product_mask", mask, None),
                           ("qscaled_dot_product_scale", None, 0.25), ("qscaled_dot_product_mask_scale", mask, 0.25)):
        inputs = [("query", q), ("key", k), ("value", v)] + ([("attn_mask", m)] if m is not None else [])
        numbers = (("NONE",) if m is None else ()) + (0.0, False, scale) + scales
        yield (name, "torchao.qscaled_dot_product.default", inputs, numbers, attention(q, k, v, m, scale, *scales))
    weight = torch.randint(-128, 128, (10, 6), generator=g, dtype=torch.int8)
    indices, offsets = torch.tensor([1, 2, 4, 9, 0, 3, 3]), torch.tensor([0, 3, 3, 7])
    scale = torch.tensor([0.05])
    yield ("scaled_embedding_bag", "torchao._scaled_embedding_bag.default",
           [("qweight", weight), ("indices", indices), ("offsets", offsets), ("weight_scale", scale)],
           (1.0, 0, True, torch.float32),
           torch.nn.functional.embedding_bag(indices, weight.float() * scale, offsets, mode="sum", include_last_offset=True))


def main():
    folder = sys.argv[1]
    print(torch.__version__, torchvision.__version__)
    for name, op, inputs, numbers, expected in samples():
        types = ", ".join(f'{key}: "{SHORT[t.dtype]}{list(t.shape)}"' for key, t in inputs)
        words = ", ".join([key for key, _ in inputs] + ["None" if n in (None, "NONE") else repr(n) for n in numbers])
        with open(f"{folder}/{name}.py", "w") as out:
            out.write(f"def forward({types}):\n    result = torch.ops.{op}({words})\n    return (result,)\n")
        save_file({key: t.contiguous() for key, t in inputs}, f"{folder}/{name}.inputs.safetensors")
        save_file({"result": expected.contiguous()}, f"{folder}/{name}.expected.safetensors")


if __name__ == "__main__":
    main()
