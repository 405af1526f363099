"""Variants of an op's samples: the same call with other dtypes, layouts, sizes and flags. Used by record_ops.py.

Whether a variant is a legal call is not known here: PyTorch decides, and a refusal is recorded as one.
"""
import re

TENSOR = re.compile(r"(?<![\w.])(b8|i8|i16|i32|i64|u8|bf16|f16|f32|f64|c64)\[([-\d, ]*)\](?:\[([-\d, ]*)\])?(<\d+|>0|!|%)?")
FLOATS = ("bf16", "f16", "f32", "f64")
INTEGERS = ("i64", "i32", "i16", "i8", "u8", "b8")
DIMS = {"dim", "dims", "dim0", "dim1", "start_dim", "end_dim", "axis"}


def numbers(text):
    return [int(part) for part in text.split(",") if part.strip()]


def parts(match):
    """(dtype, sizes, strides or None, how its values are drawn)"""
    return match.group(1), numbers(match.group(2)), numbers(match.group(3)) if match.group(3) is not None else None, match.group(4) or ""


def text_of(dtype, sizes, strides, how):
    return dtype + str(sizes) + (str(strides) if strides is not None else "") + how


def with_tensors(text, change, only=None):
    """`change(dtype, sizes, strides, how)` applied to every tensor, or to number `only`."""
    count = -1

    def one(match):
        nonlocal count
        count += 1
        given = parts(match)
        return text_of(*(change(*given) if only is None or only == count else given))

    return TENSOR.sub(one, text)


def dtypes(text):
    found = [match.group(1) for match in TENSOR.finditer(text)]
    main = next((name for name in found if name in FLOATS), None) or next((name for name in found if name in INTEGERS), None)
    if main is None:
        return
    for other in FLOATS + INTEGERS:
        if other != main:
            yield with_tensors(text, lambda d, *rest: (other if d == main else d, *rest))
    if found.count(main) > 1:
        for other in ("bf16", "f64", "i32"):
            yield with_tensors(text, lambda d, *rest: (other if d == main else d, *rest), only=found.index(main))


def row_major(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def transposed(dtype, sizes, strides, how):
    if strides is not None or len(sizes) < 2:
        return dtype, sizes, strides, how
    return dtype, sizes, row_major(sizes[::-1])[::-1], how


def sliced(dtype, sizes, strides, how):
    if strides is not None or not sizes:
        return dtype, sizes, strides, how
    return dtype, sizes, [2 * step for step in row_major(sizes)], how


def expanded(dtype, sizes, strides, how):
    if strides is not None or not sizes or sizes[0] < 2:
        return dtype, sizes, strides, how
    return dtype, sizes, [0] + row_major(sizes)[1:], how


def channels_last(dtype, sizes, strides, how):
    if strides is not None or len(sizes) != 4:
        return dtype, sizes, strides, how
    n, c, h, w = (max(size, 1) for size in sizes)
    return dtype, sizes, [c * h * w, 1, w * c, c], how


def layouts(text):
    count = len(TENSOR.findall(text))
    for change in (transposed, sliced, expanded, channels_last):
        yield with_tensors(text, change)
        if count > 1:
            yield with_tensors(text, change, only=0)


def sizes(text):
    """One size of the call becomes 0 or 1 wherever it stands; then the first, and every, tensor becomes 0-d."""
    found = sorted({size for match in TENSOR.finditer(text) for size in numbers(match.group(2))})
    for old in found[-2:]:
        for new in (0, 1):
            if old != new:
                yield with_tensors(text, lambda d, s, st, how: (d, [new if size == old else size for size in s], None if st is not None and old in s else st, how))
    if found:
        yield with_tensors(text, lambda d, s, st, how: (d, [], None, how))
        yield with_tensors(text, lambda d, s, st, how: (d, [], None, how), only=0)


def split_arguments(text):
    out, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += char in "[(" 
        depth -= char in "])"
        if char == "," and depth == 0:
            out.append(text[start:at].strip())
            start = at + 1
    return out + [text[start:].strip()] if text.strip() else []


def flags(text, schema):
    """Dims counted from the end, and every flag the other way round."""
    given = split_arguments(text)
    match = TENSOR.search(text)
    rank = len(numbers(match.group(2))) if match else 0
    names = set()
    for place, argument in enumerate(given):
        keyword = re.match(r"(\w+) *= *(.*)$", argument)
        name = keyword.group(1) if keyword else schema.arguments[place].name if place < len(schema.arguments) else ""
        value = keyword.group(2) if keyword else argument
        names.add(name)
        if name in DIMS and re.fullmatch(r"-?\d+|\[[-\d, ]+\]", value):
            turned = re.sub(r"-?\d+", lambda m: str(int(m.group()) - rank if int(m.group()) >= 0 else int(m.group()) + rank), value)
            yield ", ".join(given[:place] + [argument[:len(argument) - len(value)] + turned] + given[place + 1:])
        if value in ("True", "False"):
            turned = "False" if value == "True" else "True"
            yield ", ".join(given[:place] + [argument[:len(argument) - len(value)] + turned] + given[place + 1:])
    for place, parameter in enumerate(schema.arguments):
        if place < len(given) or parameter.name in names or str(parameter.type) != "bool" or parameter.name == "pin_memory":
            continue
        yield ", ".join(given + [f"{parameter.name} = {not parameter.default_value}"])


def all_of(samples, schema):
    """The op's own samples, then variants of the first two, each once."""
    seen = dict.fromkeys(samples)
    for number, text in enumerate(samples[:2]):
        makers = [layouts(text), sizes(text), flags(text, schema)]
        if number == 0:
            makers.insert(0, dtypes(text))
        for maker in makers:
            for variant in maker:
                seen.setdefault(variant)
    return list(seen)
