#!/usr/bin/env python3
"""Records graphs with flex_attention, which torch.export.save refuses, as text, with inputs and what eager computes.

    record_flex.py tests/data/exports

Needs PyTorch (2.15 was used) and safetensors. Writes FOLDER/flex-NAME/{model.txt,inputs_0.safetensors,expected_0.safetensors}:
the graph that torch.compile captures ("captured"), after AOTAutograd ("aot"), and its backward ("backward"), which PyTorch
refuses on a CPU only in front of the operator.
"""
import sys
from pathlib import Path

import torch
import torch.nn.attention.flex_attention as flex
from functorch.compile import make_boxed_func
from safetensors.torch import save_file
from torch._dynamo.backends.common import aot_autograd

flex._validate_device = lambda *args, **kwargs: None
torch.manual_seed(0)
LENGTH = 24
table = torch.randn(2, LENGTH, LENGTH)


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q >= k) & (q - k < 7)


def nothing(b, h, q, k):
    return k < 0


CASES = {  # score, mask, heads of queries and of keys, batches, dtype
    "slopes": (lambda s, b, h, q, k: s + (h + 1) * 0.1 * (k - q), None, 2, 2, 1, torch.float32),
    "table": (lambda s, b, h, q, k: s + table[h, q, k], causal, 2, 2, 1, torch.float32),
    "groups": (lambda s, b, h, q, k: 5 * torch.tanh(s / 5), window, 4, 2, 2, torch.float32),
    "half": (lambda s, b, h, q, k: s * 2, causal, 2, 2, 1, torch.bfloat16),
    "masked": (lambda s, b, h, q, k: s, nothing, 2, 2, 1, torch.float32),
}
KEPT = {"slopes-captured", "table-captured", "groups-captured", "groups-backward", "half-aot", "masked-aot", "table-backward"}


def tensors(values):
    return {f"{i:04}": v.detach().clone().contiguous() for i, v in enumerate(values) if isinstance(v, torch.Tensor)}


def main(folder):
    for name, (score, mask, heads, key_heads, batches, dtype) in CASES.items():
        q, k, v = (torch.randn(batches, h, LENGTH, 8, dtype=dtype, requires_grad=True) for h in (heads, key_heads, key_heads))
        blocks = flex.create_block_mask(mask, None, None, LENGTH, LENGTH, device="cpu") if mask else None

        def function(q, k, v):
            return flex.flex_attention(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=heads != key_heads, return_lse=True)

        def keep(which, graph, run):
            text = graph.print_readable(False, include_stride=True, include_device=True)

            def kept(*args):
                given = tensors(args)
                results = run(*args)
                if f"{name}-{which}" in KEPT:
                    target = Path(folder) / f"flex-{name}-{which}"
                    target.mkdir(parents=True, exist_ok=True)
                    lines = [line for line in text.splitlines() if not line.strip().startswith("#")]
                    (target / "model.txt").write_text("\n".join(lines) + "\n")
                    save_file(given, target / "inputs_0.safetensors")
                    save_file(tensors(results), target / "expected_0.safetensors")
                return results
            return kept

        def backend(graph, args):
            def compiler(which):
                return lambda inner, _: make_boxed_func(keep(which, inner, inner.forward))
            aot = aot_autograd(fw_compiler=compiler("aot"), bw_compiler=compiler("backward"))
            return keep("captured", graph, aot(graph, args))

        torch._dynamo.reset()
        out, lse = torch.compile(function, backend=backend)(q, k, v)
        (out.float().sum() + (0 if mask is nothing else lse.sum() * 0.3)).backward()


if __name__ == "__main__":
    main(sys.argv[1])
