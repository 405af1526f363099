#!/usr/bin/env python3
"""Records which kernel PyTorch's scaled_dot_product_attention picks for a table of calls.

    python3 tests/scripts/record_attention.py > attention.txt

Needs PyTorch 2.11; the rows of the GPU were recorded on an NVIDIA H100 with cuDNN 9.19. tests/engine/attention_test.cpp
reads tests/data/ops/attention.txt. A line is
    device query key value mask causal dropout grouped order: KERNELS
with sizes as 2x4x32x64, mask as none, float, bool or grad, order the dims as they lie in memory, and one letter each for
f32, f16, bf16 and f64: M math, F flash, E efficient, C cudnn.
"""
import itertools
import warnings

import torch

warnings.filterwarnings("ignore")
LETTERS = {0: "M", 1: "F", 2: "E", 3: "C"}
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
BASE = (2, 4, 32, 64)


def cases():
    """query, key, value, mask, causal, dropout, grouped, order"""

    def case(q, k, v, mask="none", causal=False, dropout=0.0, grouped=False, order=(0, 1, 2, 3)):
        return q, k, v, mask, causal, dropout, grouped, order

    for dim in (1, 2, 3, 4, 5, 8, 12, 16, 20, 32, 64, 72, 96, 128, 136, 192, 224, 256, 260, 264, 512):
        yield case(*[(2, 4, 32, dim)] * 3)
    for mask, causal, dropout in itertools.product(("none", "float", "bool", "grad"), (False, True), (0.0, 0.25)):
        if mask == "none" or not causal:
            yield case(BASE, BASE, BASE, mask, causal, dropout)
    for length in (1, 2, 5, 30):
        q = (2, 4, length, 64)
        yield case(q, BASE, BASE)
        yield case(q, BASE, BASE, causal=True)
        yield case(q, q, q)
        yield case(q, q, q, "float")
    for length in (31, 33, 40):
        k = (2, 4, length, 64)
        yield case(BASE, k, k, "float")
        yield case(BASE, k, k, "bool")
    for size in (8, 12, 32, 128, 200):
        yield case(BASE, BASE, (2, 4, 32, size))
    for keys, values in ((2, 2), (1, 1), (1, 2), (4, 4), (3, 3)):
        for causal in (False, True):
            yield case(BASE, (2, keys, 32, 64), (2, values, 32, 64), causal=causal, grouped=True)
    yield case(BASE, (2, 2, 32, 64), (2, 2, 32, 64))
    yield case(BASE, (1, 4, 32, 64), BASE)
    yield case(*[(0, 4, 32, 64)] * 3)
    yield case(BASE, (2, 4, 0, 64), (2, 4, 0, 64))
    yield case((2, 4, 0, 64), BASE, BASE)
    yield case(*[(2, 0, 32, 64)] * 3)
    yield case(*[(2, 4, 32, 0)] * 3)
    for order in ((0, 2, 1, 3), (0, 1, 3, 2), (2, 0, 1, 3)):
        yield case(BASE, BASE, BASE, order=order)
    yield case(*[(4, 32, 64)] * 3, order=(0, 1, 2))
    yield case(*[(1, 1, 4096, 64)] * 3)


def tensor(sizes, order, dtype, device):
    stored = torch.zeros([sizes[dim] for dim in order], dtype=dtype, device=device)
    return stored.permute([order.index(dim) for dim in range(len(order))])


def choice(call, dtype, device):
    q, k, v = (tensor(sizes, call[7], dtype, device) for sizes in call[:3])
    mask = None
    if call[3] != "none":
        mask = torch.zeros(q.shape[-2], k.shape[-2], dtype=torch.bool if call[3] == "bool" else dtype, device=device)
        mask.requires_grad_(call[3] == "grad")
    return LETTERS[torch._fused_sdp_choice(q, k, v, mask, call[5], call[4], enable_gqa=call[6])]


def main():
    for device in ["cpu"] + (["cuda"] if torch.cuda.is_available() else []):
        for call in cases():
            words = ["x".join(map(str, sizes)) for sizes in call[:3]]
            words += [call[3], str(int(call[4])), str(call[5]), str(int(call[6])), "".join(map(str, call[7]))]
            print(device, *words, end=": ")
            print("".join(choice(call, dtype, device) for dtype in DTYPES))


if __name__ == "__main__":
    main()
