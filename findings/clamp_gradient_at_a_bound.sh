#!/usr/bin/env bash
# PyTorch 2.15.0 (PyPI): an element that lies on the bound of torch.clamp gets the gradient 0 where the bound is a number, and
# one half where it is a tensor; a tensor that is a bound gets the other half. Until 2.11 the mask was `self >= min`, so the
# gradient was 1, as texts about clamp still say, and the bound got 0. Elements on a bound are common: zeros behind a ReLU,
# saturated activations, padding. Whoever trains with the engine of another release, or writes the derivative of clamp from
# memory, gets other gradients from the same graph. Tried on the CPU, in float32.
#
# Seen: "min=0: 0.0, max=0: 0.0, min=tensor: 0.5 and 0.5, hardtanh: 0.0, maximum: 0.5"
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check torch==2.15.0
cat >"$work/clamp.py" <<'PY'
import torch


def gradient(function):
    x = torch.tensor([0.0], requires_grad=True)
    function(x).sum().backward()
    return x.grad.item()


bound = torch.tensor([0.0], requires_grad=True)
print(
    f"min=0: {gradient(lambda x: x.clamp(min=0))}, max=0: {gradient(lambda x: x.clamp(max=0))}, "
    f"min=tensor: {gradient(lambda x: x.clamp(min=bound))} and {bound.grad.item()}, "
    f"hardtanh: {gradient(lambda x: torch.nn.functional.hardtanh(x, 0.0, 1.0))}, "
    f"maximum: {gradient(lambda x: torch.maximum(x, torch.tensor(0.0)))}"
)
PY
seen=$("$work/venv/bin/python" "$work/clamp.py" 2>/dev/null)
echo "$seen"
[ "$seen" = "min=0: 0.0, max=0: 0.0, min=tensor: 0.5 and 0.5, hardtanh: 0.0, maximum: 0.5" ]
