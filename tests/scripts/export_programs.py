"""More cases of try_exports.py: sizes that are symbols, higher-order operators, layers, linear algebra, models, containers, buffers."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import associative_scan, cond, map as map_over, scan, while_loop
from torch.export import Dim

from export_cases import case, i, layer, t, x

AUTO = Dim.AUTO


def symbols():
    a, longer = x(10, 4), x(13, 4)
    rows = {0: AUTO}

    def sized(name, function, **options):
        case(f"symbol-{name}", function, a, dynamic=rows, runs=[(longer,)], **options)

    sized("slice", lambda a: a[: a.shape[0] - 2] * 2)
    sized("last-row", lambda a: a[a.shape[0] - 1])
    sized("view", lambda a: a.view(-1) + 1, train=True)
    sized("mean", lambda a: a.sum(0) / a.shape[0], train=True)
    sized("arange", lambda a: torch.arange(a.shape[0]) + a[:, 0])
    sized("causal-mask", lambda a: (a @ a.t()).masked_fill(torch.ones(a.shape[0], a.shape[0]).triu(1).bool(), -math.inf).softmax(-1))
    sized("pad", lambda a: F.pad(a, (1, 2, 0, 3), value=1.))
    sized("cat", lambda a: torch.cat([a, a[1:]]))
    sized("expand", lambda a: a[:, None].expand(-1, a.shape[0], -1).sum(1))
    sized("repeat", lambda a: a.repeat(2, 3), train=True)
    sized("cumsum", lambda a: a.cumsum(0))
    sized("sort", lambda a: a.sort(0).values)
    sized("topk", lambda a: a.topk(3, 0).values)
    sized("layer-norm", lambda a: F.layer_norm(a, (4,)), train=True)
    sized("attention", lambda a: F.scaled_dot_product_attention(a[None, None], a[None, None], a[None, None]))
    sized("roll-flip", lambda a: a.roll(1, 0).flip(0))
    sized("sqrt-size", lambda a: a / math.sqrt(a.shape[0]))
    sized("full", lambda a: torch.full((a.shape[0], 2), a.shape[0]))
    sized("linspace", lambda a: torch.linspace(0, 1, a.shape[0])[:, None] * a)
    sized("one-hot", lambda a: F.one_hot(a[:, 0].long().abs() % 3, 3))
    case("symbol-even", lambda a: a.view(2, -1, 4), a, dynamic=rows, runs=[(x(12, 4),)])
    case("symbol-two", lambda a, b: a[1:] + b, a, x(9, 4), dynamic=[rows, rows], runs=[(longer, x(12, 4))])
    case("symbol-matmul", lambda a, b: a @ b, a, x(4, 6), dynamic=[{0: AUTO, 1: AUTO}, {0: AUTO, 1: AUTO}], runs=[(x(3, 5), x(5, 7))], train=True)
    case("symbol-image", lambda a: F.interpolate(a, scale_factor=2, mode="nearest"), x(1, 2, 6, 8), dynamic={2: AUTO, 3: AUTO},
         runs=[(x(1, 2, 5, 7),)])
    case("symbol-image-half", lambda a: F.interpolate(a, scale_factor=1.5, mode="bilinear"), x(1, 2, 6, 8), dynamic={2: AUTO, 3: AUTO},
         runs=[(x(1, 2, 5, 7),)])
    case("symbol-conv", layer(lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1)), x(2, 2, 9, 8), dynamic={0: AUTO, 2: AUTO, 3: AUTO},
         runs=[(x(3, 2, 7, 11),)], train=True)
    case("symbol-pool", lambda a: F.adaptive_avg_pool2d(a, 1).flatten(1), x(2, 2, 9, 8), dynamic={0: AUTO}, runs=[(x(3, 2, 9, 8),)])
    case("symbol-head", lambda a: F.scaled_dot_product_attention(a, a, a), x(1, 1, 4, 6), dynamic={2: AUTO, 3: AUTO}, runs=[(x(1, 1, 5, 8),)])
    case("symbol-head-arithmetic", lambda a, v: F.scaled_dot_product_attention(a, a, v, is_causal=True), x(1, 2, 4, 6), x(1, 2, 4, 5), dynamic=[{2: AUTO, 3: AUTO}, {2: AUTO}], runs=[(x(1, 2, 5, 8), x(1, 2, 5, 5))])
    case("unbacked-part-in-rows", lambda a, n: (a[:, n.item():] * 2, a.t()[:n.item()].sum(1)), a, i(2), runs=[(a, i(-2)), (a, i(0))])
    case("unbacked-slice", lambda a, n: a[:n.item()], a, i(3), runs=[(a, i(-2)), (a, i(99))])
    case("unbacked-from", lambda a, n: a[n.item():].sum(0), a, i(3), runs=[(a, i(-2))])
    case("unbacked-arange", lambda n: arange(n), i(4), runs=[(i(7),)])
    case("unbacked-checked", lambda a, n: checked_row(a, n), a, i(4))
    case("unbacked-repeat", lambda a, n: a.repeat_interleave(n, dim=0), x(3, 4), t([1, 2, 0]))
    case("unbacked-nonzero", lambda a: a[(a[:, 0] > 0).nonzero().squeeze(1)] * 2, a, runs=[(-a,)])
    case("unbacked-mask", lambda a: a[a > 0].exp().sum(), a)
    case("unbacked-unique", lambda n: torch.unique(n), t([3, 1, 3, 2]))


def arange(n):
    size = n.item()
    torch._check(size >= 0)
    return torch.arange(size) * 2


def checked_row(a, n):
    row = n.item()
    torch._check(0 <= row)
    torch._check(row < 10)
    return a[row] + 1


def higher_order():
    a = x(4, 3)
    w = x(3, 3, seed=1)
    case("cond-predicate", lambda a: cond(a.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (a,)), a, runs=[(-a,)])
    case("map", lambda a, w: map_over(lambda row, w: (row @ w).tanh(), a, w), a, w, train=True)
    case("scan", lambda a, w: scan(lambda h, row: ((h @ w + row).tanh(), (h @ w + row) * 1.), a[0], a, dim=0), a, w, train=True)
    case("scan-chain", lambda a, w: scan(lambda h, r: ((h @ w + r).tanh(), h * 1.), a[0], scan(lambda h, r: ((h @ w + r).tanh(), h * 1.), a[0], a)[1])[0],
         a, w, train=True)
    case("while", lambda a: while_loop(lambda n, a: n < 5, lambda n, a: (n + 1, a * 1.5), (i(0), a)), a)
    case("associative-scan", lambda a: associative_scan(lambda p, q: p + q, a, 0), a)
    case("associative-scan-dim", lambda a: associative_scan(lambda p, q: p * q, a, 1), a)
    case("associative-scan-generic", lambda a: associative_scan(lambda p, q: p + q, a, 0, combine_mode="generic"), a)
    case("vmap-sum", lambda a: torch.vmap(lambda r: r.sum())(a), a)
    case("vmap-matvec", lambda a, w: torch.vmap(lambda r: w @ r)(a), a, w)
    case("vmap-two", lambda a, w: torch.vmap(lambda r, s: (r * s).softmax(0), in_dims=(0, 1))(a[:3], w), a, w)
    case("vmap-nested", lambda a: torch.vmap(lambda r: torch.vmap(lambda s: r[0] * s)(a))(a), a)
    case("vmap-norm", lambda a: torch.vmap(lambda r: F.layer_norm(r, (3,)))(a), a)
    case("vmap-out-dim", lambda a: torch.vmap(lambda r: r.cumsum(0), out_dims=1)(a), a)
    case("vmap-index", lambda a, n: torch.vmap(lambda r, k: r.index_select(0, k[None]))(a, n), a, t([0, 2, 1, 0]))
    case("vmap-conv", lambda a, k: torch.vmap(lambda s: F.conv1d(s[None], k))(a), x(4, 2, 9), x(3, 2, 3))
    case("jvp", lambda a: torch.func.jvp(lambda a: a.sin().sum(0), (a,), (torch.ones_like(a),)), a)
    case("checkpoint", lambda a: torch.utils.checkpoint.checkpoint(lambda a: (a @ a.t()).relu(), a, use_reentrant=False), a, train=True)
    case("autocast", lambda a, w: autocast(a, w), a, w)
    case("no-grad-part", lambda a: detached(a), a, train=True)


def autocast(a, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (a @ w).float()


def detached(a):
    with torch.no_grad():
        scale = a.abs().max()
    return a / scale


def layers():
    image, signal, rows = x(2, 4, 9, 8), x(2, 4, 12), x(5, 8)
    for name, make, given in [
            ("linear", lambda: nn.Linear(8, 3), rows), ("mlp", lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(.1), nn.Linear(16, 2)), rows),
            ("bilinear", lambda: Pair(nn.Bilinear(8, 8, 3)), rows), ("conv1d", lambda: nn.Conv1d(4, 6, 3, dilation=2), signal),
            ("conv2d-groups", lambda: nn.Conv2d(4, 8, 3, groups=4, bias=False), image), ("conv-same", lambda: nn.Conv2d(4, 2, 3, padding="same"), image),
            ("conv-reflect", lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"), image),
            ("conv-transposed", lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, output_padding=1), image), ("conv3d", lambda: nn.Conv3d(2, 3, 2), x(1, 2, 4, 5, 6)),
            ("batch-norm-conv", lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU()), image),
            ("group-norm", lambda: nn.GroupNorm(2, 4), image), ("instance-norm", lambda: nn.InstanceNorm2d(4, affine=True), image),
            ("rms-norm", lambda: nn.RMSNorm(8), rows), ("local-response", lambda: nn.LocalResponseNorm(2), image), ("prelu", lambda: nn.PReLU(4), image),
            ("glu", lambda: nn.GLU(), rows), ("max-pool", lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), image), ("avg-pool", lambda: nn.AvgPool2d(2, 2, 1), image),
            ("lp-pool", lambda: nn.LPPool2d(2, 3), image), ("adaptive-max", lambda: nn.AdaptiveMaxPool2d((3, 2)), image),
            ("adaptive-avg", lambda: nn.AdaptiveAvgPool2d((4, 3)), image), ("pixel-shuffle", lambda: nn.PixelShuffle(2), image),
            ("unfold-fold", lambda: nn.Sequential(nn.Unfold(3, padding=1), nn.Fold((9, 8), 3, padding=1)), image), ("upsample", lambda: nn.Upsample(scale_factor=2, mode="bicubic"), image),
            ("lstm", lambda: First(nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)), x(2, 5, 8)), ("gru", lambda: First(nn.GRU(8, 6)), x(5, 2, 8)),
            ("rnn-cell", lambda: nn.RNNCell(8, 6), rows), ("attention", lambda: Self(nn.MultiheadAttention(8, 2, batch_first=True)), x(2, 5, 8)),
            ("encoder", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True), x(2, 5, 8)),
            ("decoder", lambda: Pair(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)), x(2, 5, 8)), ("weight-norm", lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)), rows),
            ("tied", Tied, t([[1, 2], [0, 5]])), ("residual", Residual, image), ("se-block", Squeeze, image), ("depthwise", lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 1), nn.ReLU6()), image),
            ("cross-entropy", lambda: Loss(nn.CrossEntropyLoss(label_smoothing=.1)), rows), ("bce", lambda: Loss(nn.BCEWithLogitsLoss()), rows), ("huber", lambda: Loss(nn.HuberLoss()), rows)]:
        case(f"layer-{name}", layer(make), given, train=True)
    case("batch-norm-train", layer(lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6))).train(), image, train=True)
    case("embedding-model", layer(lambda: nn.Sequential(nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 4))), t([[1, 2], [0, 8]]), train=True)
    case("nearest-unchanged", lambda a: F.interpolate(a, scale_factor=(1.3, 1.5), mode="nearest"), x(1, 1, 3, 3))
    case("resize-uint8", lambda a: F.interpolate(a, size=(9, 5), mode="bilinear"), x(1, 1, 6, 8, dtype=torch.uint8))
    case("resize-antialias", lambda a: F.interpolate(a, size=(4, 5), mode="bicubic", antialias=True), x(1, 2, 9, 8))
    case("resize-uint8-antialias", lambda a: F.interpolate(a, size=(4, 5), mode="bilinear", antialias=True), x(1, 1, 6, 8, dtype=torch.uint8))
    case("grid-sample", lambda a: F.grid_sample(a, F.affine_grid(torch.eye(2, 3)[None] * .9, (1, 1, 6, 8), False), align_corners=False), x(1, 1, 6, 8), train=True)
    case("sdpa-causal", lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True), x(1, 2, 5, 8), train=True)
    case("sdpa-mask", lambda a: F.scaled_dot_product_attention(a, a, a, a[0, 0, :, :5] > 0), x(1, 2, 5, 8))
    case("sdpa-gqa", lambda a: F.scaled_dot_product_attention(a, a[:, :2], a[:, :2], enable_gqa=True), x(1, 4, 5, 8))
    case("rope", lambda a: rotary(a), x(1, 2, 5, 8), train=True)


class Pair(nn.Sequential):
    def forward(self, a):
        return self[0](a, a)


class First(nn.Sequential):
    def forward(self, a):
        return self[0](a)[0]


class Self(nn.Sequential):
    def forward(self, a):
        return self[0](a, a, a)


class Loss(nn.Sequential):
    def forward(self, a):
        return self[0](a, a.softmax(-1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, a):
        return (a + self.b(self.norm(self.a(a)).relu())).relu()


class Squeeze(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, a):
        return a * self.b(self.a(a.mean((2, 3))).relu()).sigmoid()[..., None, None]


def rotary(a):
    angle = torch.arange(5.)[:, None] / 10 ** (torch.arange(4.) / 4)
    first, second = a.chunk(2, -1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)


def algebra():
    square = x(5, 5) + 4 * torch.eye(5)
    positive = square @ square.t()
    L = torch.linalg
    for name, function, given in [
            ("inv", L.inv, square), ("det", L.det, square), ("slogdet", L.slogdet, square), ("cholesky", L.cholesky, positive), ("eigvalsh", L.eigvalsh, positive),
            ("eigh", lambda a: L.eigh(a)[0], positive), ("svdvals", L.svdvals, x(5, 3)), ("svd", lambda a: L.svd(a, False)[1], x(5, 3)), ("pinv", L.pinv, x(5, 3)),
            ("qr", lambda a: L.qr(a)[1].abs(), x(5, 3)), ("lu", lambda a: L.lu(a), square), ("lu-factor", lambda a: L.lu_factor(a)[0], square),
            ("matrix-exp", L.matrix_exp, square / 9), ("matrix-power", lambda a: L.matrix_power(a, -2), square), ("matrix-norm", lambda a: (L.matrix_norm(a, 2), L.norm(a)), square),
            ("vector-norm", lambda a: L.vector_norm(a, 3, 1), square), ("solve", lambda a: L.solve(a, a[0]), square), ("triangular", lambda a: L.solve_triangular(a.tril(), a, upper=False), square),
            ("cholesky-solve", lambda a: torch.cholesky_solve(a, L.cholesky(a)), positive), ("lstsq", lambda a: L.lstsq(a, a[:, :1]).solution, x(5, 3)), ("cond", L.cond, square),
            ("multi-dot", lambda a: L.multi_dot([a, a, a[0]]), square), ("cross", lambda a: L.cross(a[:, :3], a[:, 1:4]), square), ("householder", lambda a: L.householder_product(a, a[0] * .1), square)]:
        case(f"linalg-{name}", function, given)
        case(f"linalg-{name}-batch", function, torch.stack([given, given * 1.1]))
    for name in ("inv", "cholesky", "solve_ex", "det"):
        case(f"linalg-{name}-decomposed", lambda a, n=name: getattr(L, n)(a, a) if n == "solve_ex" else getattr(L, n)(a), positive, decompose=True)
    case("linalg-inv-train", L.inv, square, train=True)
    case("linalg-cholesky-train", L.cholesky, positive, train=True)
    case("linalg-complex-inv", L.inv, square + 1j * x(5, 5, seed=3))
    case("einsum", lambda a: torch.einsum("bij,bjk->ik", a, a), x(3, 4, 4), train=True)
    case("tensordot-kron", lambda a: (torch.tensordot(a, a, 1), torch.kron(a[:2], a[:2]), torch.outer(a[0], a[1])), x(4, 4))
    case("baddbmm", lambda a: torch.baddbmm(a, a, a, beta=.5, alpha=2), x(2, 4, 4), train=True)
    case("addmm-int", lambda n: torch.addmm(n, n, n, beta=2), x(4, 4, dtype=torch.int64))
    case("cdist", lambda a: torch.cdist(a, a[:2]), x(5, 4))
    case("order-cummax", lambda a: (a.cummax(0), a.cummin(0)), t([3., 1., 3., 2., 2., 9., 1.]))
    for name in ("sort", "argsort", "topk", "kthvalue", "median", "mode", "unique_consecutive", "argmax", "aminmax"):
        case(f"order-{name}", lambda a, f=getattr(torch, name), k=(2,) if name in ("topk", "kthvalue") else (): f(a, *k), t([3., 1., 3., 2., 2., 9., 1.]))
    case("order-long-ties", lambda n: n.sort(), x(160, dtype=torch.int64))


def containers():
    a = x(3, 4)
    case("none-input", lambda a, m: a * 2 if m is None else a * m, a, None)
    case("none-inputs", lambda m, a, n: (a + 1, m, a @ a.t()), None, a, None)
    case("number-inputs", lambda a, n, s, b: a * n + s if b else a, a, 3, .5, True)
    case("string-input", lambda a, how: F.interpolate(a[None], scale_factor=2., mode=how), a, "nearest")
    case("dict-input", lambda d: d["a"] + d["b"][0], {"a": a, "b": [a, 2]})
    case("nested-output", lambda a: {"a": a + 1, "b": [a, (a * 2,)]}, a)
    case("constant-outputs", lambda a: (a + 1, True, 3, None, 2.5, "text"), a)
    case("input-returned", lambda a: (a, a), a)
    case("constant-tensor", lambda a: a + torch.tensor([1., 2., 3., 4.]), a)
    case("empty", lambda a: (a[:0].sum(0), a[:0].exp(), torch.cat([a[:0], a])), a)
    case("zero-dim", lambda a: a.sum() * a[0, 0] + torch.tensor(1), a)
    case("strided-input", lambda a: a.contiguous() + a, x(4, 3).t())
    case("channels-last", lambda a: F.conv2d(a, torch.ones(2, 3, 3, 3)), x(1, 3, 8, 8).to(memory_format=torch.channels_last))
    case("expanded-input", lambda a: a + 1, x(1, 4).expand(3, 4))
    case("counter", layer(Counter), a)
    case("static-cache", layer(Cache), x(1, 4), i(2))
    table = {"prims": torch._decomp.decomposition_table}
    net = layer(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(144, 5), nn.LayerNorm(5)))
    case("decomposed-net", net, x(2, 3, 8, 8), decompose=True)
    case("prims-net", net, x(2, 3, 8, 8), decompose=table["prims"])
    case("prims-arithmetic", lambda a: (a.var(1), a.erf(), a.abs().rsqrt(), a.floor(), a % 2, a.log1p(), a.amax(1), a.where(a > 0, -a)), a.abs(), decompose=table["prims"])
    case("sparse-matmul", lambda r, v, d: torch.sparse_coo_tensor(r, v, (4, 5)) @ d, t([[0, 1, 3], [2, 0, 4]]), t(1., 2., 3.), x(5, 2))
    case("print", lambda a: printed(a), a)


def printed(a):
    torch._assert(a.shape[0] == 3, "rows")
    torch._check(a.shape[1] == 4)
    return a * 2


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, a):
        self.count.add_(1)
        self.mean.lerp_(a.mean(0), .1)
        return a - self.mean * self.count


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4), persistent=False)

    def forward(self, a, at):
        self.keys.index_copy_(1, at[None], a[:, None])
        return torch.softmax(self.keys @ a[:, :, None], 1)


for family in (symbols, higher_order, layers, algebra, containers):
    family()
