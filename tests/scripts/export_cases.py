"""The cases of try_exports.py: small programs of the kinds that people export, and that they report when they fail.

Each is a name, a function or a module, and its inputs. `case` takes:
  dynamic   dims that are symbols, by input: {0: [0, 1]}; `runs` has inputs of other sizes for them
  runs      inputs to run with, beside those that it was exported with
  train     gradients are compared as well (of the module's parameters, or of a factor of the first input)
  options   of cutaway-cli run
  decompose run_decompositions() before it is saved; with a table, of those
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

CASES = []
inf, nan = math.inf, math.nan


@dataclass
class Case:
    name: str
    function: object
    inputs: tuple
    dynamic: dict | None = None
    runs: tuple = ()
    train: bool = False
    decompose: object = None
    options: tuple = ()


def case(name, function, *inputs, **options):
    CASES.append(Case(name, function, inputs, **options))


def x(*sizes, seed=0, dtype=torch.float32):
    """Random numbers, the same in each run."""
    generator = torch.Generator().manual_seed(seed + 7 * len(sizes) + sum(sizes))
    if dtype == torch.bool:
        return torch.rand(*sizes, generator=generator) > 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(0 if dtype == torch.uint8 else -9, 10, sizes, generator=generator).to(dtype)
    return torch.randn(*sizes, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32).to(dtype)


def t(*values, dtype=None):
    return torch.tensor(values if len(values) > 1 or not isinstance(values[0], list) else values[0], dtype=dtype)


def i(value):
    return torch.tensor(value)


def layer(make):
    """A module with the same weights in each run."""
    torch.manual_seed(0)
    return make().eval()


def indexing():
    a, rows = x(5, 6), t([4, 0, -1])
    case("index-tensor", lambda a, n: a[n], a, i(2), runs=[(a, i(-1)), (a, i(4))])
    case("index-tensor-column", lambda a, n: a[:, n] * 2, a, i(2), runs=[(a, i(-6))])
    case("index-item", lambda a, n: a[n.item()] + 1, a, i(2), runs=[(a, i(-2))])
    case("index-item-less-one", lambda a, n: a[n.item() - 1], a, i(2), runs=[(a, i(0))])
    case("index-last-token", lambda h, n: h[0, n - 1].softmax(-1), x(1, 5, 6), i(3))
    case("index-two-tensors", lambda a, n, m: a[n, m], a, i(1), i(-2))
    case("index-rows", lambda a, r: a[r], a, rows, train=True)
    case("index-rows-columns", lambda a, r: a[r, r], a, rows)
    case("index-outer", lambda a, r: a[r[:, None], r], a, rows)
    case("index-none-ellipsis", lambda a: a[None, ..., 1:-1:2], a, train=True)
    case("index-split-by-slice", lambda a, r: a[r, :, r], x(5, 3, 6), rows)
    case("index-select", lambda a, r: a.index_select(1, r.abs()), a, rows)
    case("index-put", lambda a, r: a.index_put((r,), a[:3]), a, rows)
    case("index-put-accumulate", lambda a, r: a.index_put((r,), a[:3], accumulate=True), a, t([1, 1, -4]))
    case("index-add", lambda a, r: a.index_add(0, r, a[:3], alpha=0.5), a, t([1, 1, 3]))
    case("index-copy", lambda a, r: a.index_copy(0, r, a[:3] * 2), a, t([1, 0, 3]))
    case("index-fill", lambda a, r: a.index_fill(1, r, 7), a, t([1, 0, 3]))
    case("index-fill-tensor", lambda a, r: a.index_fill(1, r, i(7.)), a, t([1, 0, 3]))
    case("assign-row", lambda a, r: assigned(a, r), a, rows)
    case("assign-mask", lambda a: assigned(a, a > 0), a)
    case("assign-slice", lambda a: assigned(a, slice(1, None, 2)), a)
    case("mask-fill", lambda a: a.masked_fill(a > 0, -inf).softmax(1), a)
    case("mask-fill-tensor", lambda a: a.masked_fill(a > 0, i(3)), a)
    case("mask-scatter", lambda a: a.masked_scatter(a > 0, torch.arange(30.)), a)
    case("mask-select-sum", lambda a: a[a > 0].sum(), a)
    case("nonzero-count", lambda a: (a > 0).nonzero().shape[0] + a, a)
    case("where-one-argument", lambda a: torch.where(a > 1)[0].float().mean(), a)
    case("where-number", lambda a: torch.where(a > 0, a, 0), a, train=True)
    case("where-dtypes", lambda a: torch.where(a > 0, a, 1).sum(0), x(4, 3, dtype=torch.float16))
    case("gather", lambda a, r: a.gather(1, r), a, t([[0, 5], [1, 1], [2, 2], [3, 0], [4, 4]]), train=True)
    case("scatter", lambda a, r: a.scatter(1, r, -1.), a, t([[0, 5], [1, 2]]))
    case("scatter-add", lambda a, r: a.scatter_add(1, r, a), a, t([[0, 0], [1, 1]]))
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        case(f"scatter-reduce-{reduce}", lambda a, r, k=reduce: a.scatter_reduce(0, r, a, k), a, t([[0, 1], [0, 2]]))
        case(f"index-reduce-{reduce}", lambda a, r, k=reduce: a.index_reduce(0, r, a[:3], k, include_self=False)
             if k != "sum" else a.index_add(0, r, a[:3]), a, t([0, 0, 3]))
    case("take", lambda a, r: a.take(r), a, t([0, 29, -1]))
    case("take-along-dim", lambda a: a.take_along_dim(a.argsort(1), 1), a)
    case("put", lambda a, r: a.put(r, t(1., 2., 3.)), a, t([0, 29, -1]))
    case("select-negative", lambda a: a.select(-1, -2), a, train=True)
    case("select-scatter", lambda a: a.select_scatter(a[0], 0, -1), a)
    case("slice-scatter", lambda a: a.slice_scatter(a[:2], 0, 1, 5, 2), a)
    case("diagonal-scatter", lambda a: a.diagonal_scatter(t(1., 2., 3.), 1)[:3], x(3, 4))
    case("unfold-windows", lambda a: a.unfold(1, 3, 2).sum(-1), a, train=True)
    case("roll-flip-rot", lambda a: a.roll((1, -2), (0, 1)).flip(0).rot90(), a, train=True)
    case("tril-triu", lambda a: a.tril(1) + a.triu(-1), a, train=True)
    case("embedding-padding", lambda w, r: F.embedding(r, w, padding_idx=0), a, t([[0, 1], [4, 0]]), train=True)
    case("embedding-bag", lambda w, r: F.embedding_bag(r, w, mode="mean"), a, t([[0, 1], [4, 0]]))
    case("one-hot", lambda r: F.one_hot(r, 7), t([0, 6, 3]))
    case("bincount", lambda r: r.bincount(minlength=8), t([0, 6, 3, 3]))
    case("searchsorted", lambda a: torch.searchsorted(a.sort(1).values, a), a)
    case("bucketize", lambda a: torch.bucketize(a, t(-1., 0., 1.), right=True), a)
    case("unbind-stack", lambda a: torch.stack(a.unbind(1)[::-1], 1), a, train=True)
    case("chunk-cat", lambda a: torch.cat(a.chunk(4, 1), 0), a, train=True)
    case("tensor-split", lambda a: a.tensor_split((1, 4), 1)[1], a)
    case("meshgrid", lambda a: torch.meshgrid(a[0], a[:, 0], indexing="xy"), a)
    case("cartesian", lambda a: torch.cartesian_prod(a[0], a[1]), a)
    case("combinations", lambda a: torch.combinations(a[0], 2), a)


def assigned(a, where):
    b = a.clone()
    b[where] = 3.
    return b


def numbers():
    a, n = x(3, 4), x(3, 4, dtype=torch.int32)
    for name in ("add", "sub", "mul", "div", "multiply", "subtract", "divide", "true_divide", "floor_divide", "remainder", "fmod",
                 "pow", "eq", "ne", "gt", "less", "greater_equal", "not_equal", "xlogy", "float_power"):
        function = getattr(torch, name)
        case(f"number-{name}", lambda a, f=function: f(a, 2), a.abs() + .1)
        case(f"number-{name}-int", lambda a, f=function: f(a, 3), n.abs() + 1)
    for dtype in (torch.bfloat16, torch.float16):
        half = x(3, 4, dtype=dtype)
        for name in ("add", "mul", "eq", "remainder", "pow", "lt"):
            case(f"number-{name}-{str(dtype)[6:]}", lambda a, f=getattr(torch, name): f(a, .7), half.abs())
            case(f"scalar-{name}-{str(dtype)[6:]}", lambda a, f=getattr(torch, name): f(a, torch.tensor(.7)), half.abs())
    case("number-left", lambda a: (1 - a, 2 / (a + 9), 2 ** a, 7 % (a + 9), 7 // (a + 9)), a)
    case("shift-left", lambda a: (1 << a, 64 >> a, a << 1, a >> 1), n.abs() % 5)
    case("bitwise-left", lambda a: (1 & a, 2 | a, 3 ^ a, ~a), n)
    case("rsub", lambda a: torch.rsub(a, 1, alpha=2), a)
    case("alpha", lambda a: torch.add(a, a, alpha=.3) - torch.sub(a, a, alpha=3), a)
    case("addcmul", lambda a: torch.addcmul(a, a, a, value=.7), a, train=True)
    case("addcmul-int", lambda a: torch.addcmul(a, a, a, value=2), n)
    case("addcdiv", lambda a: torch.addcdiv(a, a, a.abs() + 1, value=.7), a, train=True)
    case("lerp", lambda a: (a.lerp(a * 2, .3), a.lerp(a * 2, .9), a.lerp(a * 2, a)), a)
    case("clamp-mixed", lambda a: a.clamp(-1, .5), a, train=True)
    case("clamp-tensors", lambda a: a.clamp(a[0] - 1, a[1] + 1), a)
    case("clamp-min-int", lambda a: a.clamp_min(1), n)
    case("hardtanh-int", lambda a: F.hardtanh(a, -2, 3), n)
    case("item-scale", lambda a: a / a.max().item(), a)
    case("item-full", lambda a: torch.full((3,), a.sum().item()), a)
    case("item-clamp", lambda a: a.clamp(max=a.mean().item()), a)
    case("item-bool", lambda a: a * a.gt(0).all().item(), a)
    case("promote", lambda a, n: (a + n, n / 2, n + True, n.bool() + 1.5, n * 2.5), a, n)
    case("true-divide-ints", lambda n: (n / n.abs().clamp(1), n // 2, n % 3, torch.div(n, 3, rounding_mode="trunc")), n)
    case("zero-product", lambda a: (a * 0, 0 / a, a - a), t(inf, nan, 1., -0.))
    case("minus-zero", lambda a: 1 / (a + torch.zeros_like(a)), t(-0., 2.))
    case("ldexp-frexp", lambda a: (torch.ldexp(a, i(3)), *torch.frexp(a)), a)
    case("copysign-nextafter", lambda a: (torch.copysign(a, -1.), torch.nextafter(a, a * 0)), a)
    case("heaviside-sgn", lambda a: (torch.heaviside(a, i(.5)), a.sgn(), a.sign(), a.signbit()), a)
    case("logaddexp", lambda a: (torch.logaddexp(a, a * 2), torch.logaddexp2(a, a), a.logcumsumexp(1)), a, train=True)
    case("nan-to-num", lambda a: a.nan_to_num(1., 2., -2.), t(inf, nan, -inf, 1.))
    case("gcd-lcm", lambda n: (torch.gcd(n, n + 2), torch.lcm(n.abs() + 1, i(6, ).int())), n)


def specials():
    bad = t(inf, nan, -inf, -0., 1e-42, 3e38, -1.5, .5)
    for name in ("relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "leaky_relu", "elu", "gelu", "silu", "mish", "softplus",
                 "softshrink", "hardshrink", "tanhshrink", "logsigmoid", "selu", "celu", "softsign", "sigmoid", "tanh"):
        case(f"special-{name}", getattr(F, name), bad)
    for name in ("erf", "erfc", "erfinv", "lgamma", "digamma", "expm1", "log1p", "sinc", "exp2", "rsqrt", "asinh", "atanh", "round",
                 "trunc", "frac", "special.ndtri", "special.log_ndtr", "special.entr"):
        function = getattr(torch.special, name[8:]) if name.startswith("special.") else getattr(torch, name)
        case(f"special-{name}", lambda a, f=function: f(a), t(inf, nan, -inf, -0., .3, -1.5, .5))
    # Eager gives NaN for the infinities of these, whose limits are inf and 0.
    case("special-bessel", lambda a: (a.i0(), torch.special.i1e(a), torch.special.bessel_j0(a)), t(nan, -0., .3, -1.5, 9.))
    case("special-softmax", lambda a: (a.softmax(0), a[3:].softmax(0), (a[5:] * 1e30).softmax(0)), bad)
    case("special-maximum", lambda a: (torch.maximum(a, a[0]), torch.fmax(a, a[1]), a.amax(), a[3:].max()), bad)
    case("special-sums", lambda a: (a.sum(), a.nansum(), a.prod(), a[3:].cumsum(0), a[6:].std()), bad)
    case("special-compare", lambda a: (a == a, a != a, a < 1, torch.isclose(a, a, equal_nan=True), a.isinf(), a.isfinite()), bad)
    case("special-matmul", lambda a: a.view(2, 4) @ a.view(4, 2), bad)
    case("conv-relu-nan", layer(lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU())), with_nan(x(1, 2, 6, 6)))
    case("linear-clamp-nan", layer(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU6())), with_nan(x(3, 4)))


def with_nan(a):
    a.view(-1)[7] = nan
    return a


def dtypes():
    a = x(3, 4) * 3
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        case(f"to-{name}", lambda a, d=getattr(torch, name): a.abs().to(d).to(torch.float32), a)
    for name in ("int8", "uint8", "int64", "float16", "bfloat16", "float64", "bool", "complex64", "int16"):
        case(f"to-{name}", lambda a, d=getattr(torch, name): a.abs().to(d), a)
    case("f8-saturates", lambda a: a.to(torch.float8_e4m3fn).float(), t(465., 500., 449., -inf, 448.))
    case("half-double", lambda a: a.half().double(), a)
    case("bf16-chain", lambda a: a.bfloat16().float() * 2, a)
    case("view-dtype", lambda a: a.view(torch.int32), a)
    case("view-dtype-narrow", lambda a: a.view(torch.int16), a)
    case("view-dtype-write", lambda a: zeroed_bits(a), a)
    case("uint8-arithmetic", lambda a: (a - 7, a * 3, -a, a // 2, ~a), x(3, 4, dtype=torch.uint8))
    case("bool-arithmetic", lambda a: (a & ~a, a ^ True, a.sum(), a + a, a.cumsum(1)), x(3, 4, dtype=torch.bool))
    case("int-mean", lambda a: a.double().mean(0), x(3, 4, dtype=torch.int64))
    case("complex", lambda c: (c * c.conj(), c.abs(), c.angle(), c.real, c.imag, c + 1j), x(3, 4, dtype=torch.complex64))
    case("complex-conj-imag", lambda c: c.conj().imag, x(3, 4, dtype=torch.complex64), decompose=True)
    case("complex-isclose", lambda c: torch.isclose(c, c), x(3, 4, dtype=torch.complex64))
    case("complex-write", lambda c: scaled_real(c), x(3, 4, dtype=torch.complex64))
    case("complex-matmul", lambda c: c @ c.mH, x(3, 4, dtype=torch.complex64))
    case("polar", lambda a: torch.polar(a.abs(), a), a)
    for name in ("fft", "rfft", "ifft", "hfft", "fft2", "fftshift"):
        case(f"fft-{name}", lambda a, f=getattr(torch.fft, name): f(a), a)
    case("stft-istft", lambda a: torch.istft(torch.stft(a, 8, return_complex=True, window=torch.ones(8)), 8, window=torch.ones(8)), x(32))
    case("fake-quantize", lambda a: torch.fake_quantize_per_tensor_affine(a, .1, 3, 0, 255), a, train=True)
    case("quantize-by-hand", lambda a: ((a / .1).round().clamp(-128, 127).to(torch.int8).float() * .1), a)
    case("int-mm", lambda a: torch._int_mm(a, a.t()), x(32, 32, dtype=torch.int8))
    case("scaled-mm", lambda a: torch._scaled_mm(a.to(torch.float8_e4m3fn), a.to(torch.float8_e4m3fn).t(), i(1.), i(2.)), x(16, 16))


def zeroed_bits(a):
    b = a.clone()
    b.view(torch.int32)[0].zero_()
    return b


def scaled_real(c):
    d = c.clone()
    d.real.mul_(2)
    return d


def writes():
    a = x(3, 4)
    for name, arguments in {"add_": (1,), "mul_": (2,), "sub_": (1.5,), "div_": (7,), "true_divide_": (3.,), "floor_divide_": (2,), "pow_": (2,),
                            "clamp_": (-1, 1), "relu_": (), "zero_": (), "fill_": (3,), "sqrt_": (), "exp_": (), "cumsum_": (1,),
                            "cumprod_": (0,), "greater_": (0,), "less_equal_": (0,), "not_equal_": (0,), "sinc_": (), "i0_": (), "neg_": (),
                            "remainder_": (2,), "fmod_": (2,), "renorm_": (2, 0, 1.), "t_": (), "transpose_": (0, 1), "unsqueeze_": (0,),
                            "squeeze_": (0,), "triu_": (), "fill_diagonal_": (9.,), "copysign_": (-1.,), "swapaxes_": (0, 1)}.items():
        case(f"inplace-{name}", lambda a, n=name, k=arguments: getattr(a.abs().clone(), n)(*k), a)
    case("inplace-gcn", lambda a: a.abs().sum(1).pow_(-0.5).masked_fill_(a[:, 0] > 0, 0), a)
    case("inplace-input", lambda a: (a.add_(1), a * 2)[1], a)
    case("inplace-view", lambda a: filled(a.clone(), lambda b: b[1].mul_(3)), a)
    case("inplace-transposed", lambda a: filled(a.clone(), lambda b: b.t()[1:].add_(1)), a)
    case("inplace-diagonal", lambda a: filled(a.clone(), lambda b: b.diagonal().zero_()), a)
    case("inplace-expand-read", lambda a: filled(a.clone(), lambda b: b.add_(b[:1].expand(3, 4).clone())), a)
    case("inplace-chunks", lambda a: filled(a.clone(), lambda b: [c.mul_(k) for k, c in enumerate(b.chunk(2, 1))]), a)
    case("inplace-as-strided", lambda a: filled(a.clone(), lambda b: b.as_strided((2, 2), (4, 2)).fill_(5)), a)
    case("inplace-masked", lambda a: filled(a.clone(), lambda b: b.masked_fill_(b > 0, 0)), a)
    case("inplace-scatter", lambda a: filled(a.clone(), lambda b: b.scatter_(1, t([[0], [1], [2]]), 9.)), a)
    case("inplace-index-add", lambda a: filled(a.clone(), lambda b: b.index_add_(0, t(1, 1), b[:2].clone())), a)
    case("inplace-copy-cast", lambda a: filled(a.clone(), lambda b: b.copy_(torch.arange(4))), a)
    case("inplace-where-out", lambda a: torch.add(a, 1, out=torch.empty(3, 4)), a)
    case("inplace-setitem-number", lambda a: assigned(a, (slice(None), -1)), a)


def filled(a, write):
    write(a)
    return a


for family in (indexing, numbers, specials, dtypes, writes):
    family()
