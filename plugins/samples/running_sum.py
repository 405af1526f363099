"""A library in Python: running sums over the last dim. Slow, and short enough to start from.

    cutaway-cli run model.pt2 --backend cpu --plugin running_sum
"""
import itertools

from cutaway_plugin import plugin

mine = plugin("running_sum", "1.0", "Computes running sums over the last dim")


def why_not(call, host):
    x, result = call.args["self"], call.results[0]
    if x.dtype not in ("f32", "f64") or result.dtype != x.dtype:
        return "it takes f32 and f64, and this is " + x.dtype
    if not x.sizes or call.args["dim"] not in (-1, len(x.sizes) - 1):
        return "it sums over another dim than the last"
    # Sizes and strides are -1 where only a run knows them; it asks again then.
    row_major, expected = True, 1
    for size, stride in zip(reversed(x.sizes), reversed(x.strides)):
        row_major = row_major and stride in (expected, -1) or size == 1
        expected = expected * size if size >= 0 and expected >= 0 else -1
    return None if row_major else "rows do not lie one after the other"


@mine.library("cumsum", "Running sums over the last dim", "aten.cumsum.default", why_not)
def cumsum(call, host):
    x = call.args["self"]
    numbers, row, out = x.values(), x.sizes[-1], []
    for start in range(0, len(numbers), max(row, 1)):
        out += itertools.accumulate(numbers[start:start + row])
    call.results[0].fill(out)
