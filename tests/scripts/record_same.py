"""Records what PyTorch's same() (torch/_dynamo/utils.py) says of pairs of tensors: tests/data/same.json.

Run with a Python that has PyTorch: python tests/scripts/record_same.py
Each case: name (rule), three tensors (dtype, sizes, numbers as text) and options by PyTorch's names. Numbers are given
exactly: each tensor is made in its dtype first.
"""
import json
import logging
import pathlib

import torch
from torch._dynamo.utils import same

logging.disable(logging.CRITICAL)
torch.manual_seed(0)
INF, NAN = float("inf"), float("nan")
cases = []


def described(tensor):
    if tensor is None:
        return None
    values = tensor.flatten().to(torch.float64).tolist()
    return {"dtype": str(tensor.dtype)[6:], "sizes": list(tensor.shape), "values": [repr(v) for v in values]}


def case(name, ref, res, fp64=None, **options):
    options.setdefault("tol", 1e-4)
    answer = same(ref, res, fp64, **options)
    cases.append({"name": name, "reference": described(ref), "result": described(res), "wide": described(fp64),
                  "options": options, "same": bool(answer)})


def t(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


x = torch.randn(6)
case("SAME-2 other dtype", x, x.double())
case("SAME-2 other dtype allowed", x, x.double(), exact_dtype=False)
case("SAME-2 other half allowed", x, x.half(), exact_dtype=False)
masks = t([True, False, True, True], torch.bool), t([True, False, True, False], torch.bool)
for options in ({}, {"ignore_non_fp": True}, {"use_iou_for_bool": True},
                {"use_iou_for_bool": True, "iou_threshold": 0.6}):
    case(f"SAME-3 masks {options}", *masks, **options)
    case(f"SAME-3 equal masks {options}", masks[0], masks[0], **options)
empty = t([False, False], torch.bool)
case("SAME-3 empty masks", empty, empty, use_iou_for_bool=True)
for scale in (1.00001, 1.001, 1.5, -1.0):
    case(f"SAME-4 scaled by {scale}", x, x * scale, cos_similarity=True)
case("SAME-4 zeros", torch.zeros(4), torch.zeros(4), cos_similarity=True)
case("SAME-4 zero and small", torch.zeros(4), torch.full((4,), 1e-3), cos_similarity=True)
case("SAME-4 both NaN", t([NAN, 1.0]), t([NAN, 1.0]), cos_similarity=True)
case("SAME-4 turned", t([1.0, 0.0]), t([1.0, 0.15]), cos_similarity=True)
case("SAME-4 of integers", t([1, 2, 3], torch.int64), t([1, 2, 4], torch.int64), cos_similarity=True)
for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
    base = torch.tensor([1.0, -3.0, 0.25, 100.0, 0.0, 1e-4], dtype=dtype)
    for error in (1e-5, 9e-5, 1.1e-4, 2e-4, 1e-3, 1e-2, 1e-1):
        case(f"SAME-5 {dtype} off by {error}", base, (base.double() * (1 + error)).to(dtype))
        case(f"SAME-5 {dtype} moved by {error}", base, (base.double() + error).to(dtype), tol=1e-3)
for special in ([INF, 1.0], [-INF, 1.0], [NAN, 1.0], [1.0, 1.0]):
    for other in ([INF, 1.0], [NAN, 1.0], [1.0, 1.0]):
        for equal in (False, True):
            case(f"SAME-5 {special} against {other}, {equal}", t(special), t(other), equal_nan=equal)
            case(f"SAME-6 {special} against {other}, {equal}", t(special), t(other),
                 t([1.0, 1.0], torch.float64), equal_nan=equal)
case("SAME-6 loosely", t([NAN, 1.0]), t([1.03, 1.0]), t([1.0, 1.0], torch.float64))
case("SAME-6 too loosely", t([NAN, 1.0]), t([1.09, 1.0]), t([1.0, 1.0], torch.float64))
case("SAME-6 f64 with NaN", t([NAN, 1.0]), t([1.0, 1.1]), t([NAN, 1.0], torch.float64), equal_nan=True)
case("SAME-6 f64 with NaN, NaN unequal", t([NAN, 1.0]), t([1.0, 1.1]), t([NAN, 1.0], torch.float64))
shapes = {"5": (5,), "100": (100,), "999": (999,), "1000": (1000,), "2000": (2000,), "1x1": (1, 1100, 1, 1),
          "4d": (1, 5, 20, 10)}
for name, shape in shapes.items():
    exact = torch.randn(shape, dtype=torch.float64)
    # Errors of a known size, so that the factor alone decides.
    for dtype in (torch.float32, torch.bfloat16):
        unit = 1e-2 if dtype == torch.float32 else 0.25
        sign = torch.where(torch.arange(exact.numel()).reshape(shape) % 2 == 0, 1.0, -1.0).double()
        reference = (exact + unit * sign).to(dtype)
        for factor in (1.5, 2.5, 2.9, 3.5, 7.5, 8.5, 9.5, 10.5):
            result = (exact + factor * unit * sign).to(dtype)
            if exact.numel() > 200 and factor not in (1.5, 2.5, 3.5, 9.5):
                continue
            for options in ({}, {"use_larger_multiplier_for_smaller_tensor": True}, {"force_max_multiplier": True},
                            {"tol": 2e-2}):
                if exact.numel() > 200 and options and (factor not in (2.5, 9.5) or name == "4d"):
                    continue
                compact = {"shape": list(shape), "unit": unit, "factor": factor, "dtype": str(dtype)[6:]}
                given = dict(options)
                given.setdefault("tol", 1e-4)
                cases.append({"name": f"SAME-8 {name} {dtype} x{factor} {options}", "made": compact,
                              "options": given, "same": bool(same(reference, result, exact, **given))})
case("SAME-9 no f64", x, x * 1.1)
case("SAME-9 no f64, floats only", x, x * 1.1, ignore_non_fp=True)
case("SAME-9 integers", t([1, 2, 3], torch.int64), t([1, 2, 4], torch.int64))
case("SAME-9 integers, floats only", t([1, 2, 3], torch.int64), t([1, 2, 4], torch.int64), ignore_non_fp=True)
case("SAME-9 large integers", t([10**9], torch.int64), t([10**9 + 1000], torch.int64))
case("SAME-9 equal integers", t([1, 2], torch.int32), t([1, 2], torch.int32))
case("SAME-9 f64 itself", x.double(), x.double() * 1.1)

# What is made by a rule is written as the rule: the test makes the same numbers, exactly representable ones.
for one in cases:
    if "made" not in one:
        continue
    made = one["made"]
    shape, dtype = made["shape"], getattr(torch, made["dtype"])
    count = torch.Size(shape).numel()
    exact = ((torch.arange(count) * 37 % 64).double() / 16 - 2).reshape(shape)
    sign = torch.where(torch.arange(count).reshape(shape) % 2 == 0, 1.0, -1.0).double()
    made["unit"] = 2.0**-7 if dtype == torch.float32 else 0.25
    reference = (exact + made["unit"] * sign).to(dtype)
    result = (exact + made["factor"] * made["unit"] * sign).to(dtype)
    one["same"] = bool(same(reference, result, exact, **one["options"]))

path = pathlib.Path(__file__).parent.parent / "data" / "same.json"
path.write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
print(len(cases), "cases,", sum(one["same"] for one in cases), "the same;", path)
