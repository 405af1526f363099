"""A judge in Python: results may stand for the expected ones if they point the same way.

Put it into ~/.local/share/cutaway/plugins, then: cutaway-cli bisect MODEL --judge judge_cosine
"""
import math

from cutaway_plugin import plugin

mine = plugin("judge_cosine", "1.0", "Compares results by their direction")
LEAST = 0.999


@mine.judge("cosine", "The cosine between the two is at least 0.999")
def cosine(actual, expected, host):
    if actual.dtype != expected.dtype or actual.sizes != expected.sizes:
        host.say("%s%s in place of %s%s" % (actual.dtype, actual.sizes, expected.dtype, expected.sizes))
        return False
    if actual.dtype not in ("f32", "f64"):
        return actual.data == expected.data
    a, b = actual.values(), expected.values()
    norms = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    if norms == 0:
        return a == b
    found = sum(x * y for x, y in zip(a, b)) / norms
    host.say("the cosine is %.6f" % found)
    return found >= LEAST
