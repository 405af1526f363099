"""More cases of try_exports.py: neighbours of programs that were once refused or wrong, by the kind of what was wrong."""
import torch
import torch.nn.functional as F
from torch import nn

from export_cases import case, i, inf, layer, nan, t, x

AUTO = torch.export.Dim.AUTO


def sizes():
    """Sizes that are computed in floats, rounded, divided, or compared."""
    image, hw = x(1, 2, 6, 8), {2: AUTO, 3: AUTO}
    other = [(x(1, 2, 9, 7),)]
    for mode in ("nearest", "nearest-exact", "bicubic", "area"):
        case(f"sizes-scale-{mode}", lambda a, mode=mode: F.interpolate(a, scale_factor=0.7, mode=mode), image, dynamic=hw, runs=other)
    case("sizes-scale-recomputed", lambda a: F.interpolate(a, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True), image, dynamic=hw, runs=other)
    case("sizes-scale-aligned", lambda a: F.interpolate(a, scale_factor=1.3, mode="bilinear", align_corners=True), image, dynamic=hw, runs=other, train=True)
    case("sizes-scale-1d", lambda a: F.interpolate(a, scale_factor=2.5, mode="linear"), x(1, 2, 6), dynamic={2: AUTO}, runs=[(x(1, 2, 9),)])
    case("sizes-scale-antialias", lambda a: F.interpolate(a, size=(4, 5), mode="bilinear", antialias=True), image, dynamic=hw, runs=other)
    case("sizes-scale-antialias-half", lambda a: F.interpolate(a, scale_factor=0.6, mode="bicubic", antialias=True), image, dynamic=hw, runs=other)
    case("sizes-int-of-float", lambda a: a[:, :, : int(a.shape[2] * 0.75)], image, dynamic=hw, runs=other)
    case("sizes-round", lambda a: a.new_zeros(round(a.shape[0] / 3)) + a.sum(), x(10), dynamic={0: AUTO}, runs=[(x(13),)])
    case("sizes-sqrt", lambda a: a.reshape(a.shape[0], -1) * (a.shape[1] ** -0.5), x(3, 6), dynamic={1: AUTO}, runs=[(x(3, 9),)])
    case("sizes-arange-step", lambda a: torch.arange(0, a.shape[0], 2) * 1.5, x(9), dynamic={0: AUTO}, runs=[(x(12),)])
    case("sizes-linspace", lambda a: torch.linspace(0, 1, a.shape[0]) + a, x(9), dynamic={0: AUTO}, runs=[(x(12),)])
    case("sizes-avg-pool-ceil", lambda a: F.avg_pool2d(a, 3, 2, 1, ceil_mode=True), image, dynamic=hw, runs=other, train=True)
    case("sizes-unfold", lambda a: a.unfold(2, 3, 2).sum(-1), image, dynamic=hw, runs=other)
    case("sizes-chunk", lambda a: torch.chunk(a, 2, 0)[1] * 2, x(8, 3), dynamic={0: AUTO}, runs=[(x(12, 3),)])
    case("sizes-pad-to-multiple", lambda a: F.pad(a, (0, (-a.shape[1]) % 4)), x(3, 6), dynamic={1: AUTO}, runs=[(x(3, 9),)])
    case("sizes-mean-by-hand", lambda a: a.sum(0) / a.shape[0] + a.shape[1] // 2, x(8, 6), dynamic={0: AUTO, 1: AUTO}, runs=[(x(5, 7),)])
    case("sizes-max-min", lambda a, b: a[: min(a.shape[0], b.shape[0])].sum() + max(a.shape[0], b.shape[0]), x(8, 3), x(5, 3), dynamic=[{0: AUTO}, {0: AUTO}], runs=[(x(7, 3), x(6, 3))])


def numbers():
    """Special numbers through clamps, folds, and 8-bit floats."""
    special = t(nan, inf, -inf, -0.0, 0.0, 1e-40, 3e38, -1.5)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        name = str(dtype).split("_")[-1]
        case(f"numbers-{name}", lambda a, dtype=dtype: (a * 300).to(dtype).float(), special)
        case(f"numbers-{name}-copy", lambda a, dtype=dtype: torch.zeros(8, dtype=dtype).copy_(a).to(torch.bfloat16), special)
    case("numbers-f8-matmul-scaled", lambda a, b: (a.to(torch.float8_e4m3fn).to(torch.bfloat16) @ b.to(torch.float8_e4m3fn).to(torch.bfloat16)) * 0.5, x(3, 4), x(4, 5))
    case("numbers-isclose-half", lambda a: torch.isclose(a, a + 1e-3), special.half())
    case("numbers-isclose-complex-nan", lambda a: torch.isclose(torch.complex(a, a), torch.complex(a, -a), equal_nan=True), special)
    case("numbers-complex-minus", lambda a: torch.complex(a, a).conj().imag * -0.0, special)
    case("numbers-nan-to-num", lambda a: torch.nan_to_num(a, nan=-0.0, posinf=7.0), special)
    case("numbers-clamp-tensor", lambda a: torch.clamp(a, min=t(-1.0, nan, -inf, 0.0, -0.0, 0.0, 1.0, -2.0), max=i(2.0)), special)
    case("numbers-relu6-of-conv", layer(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU6())), torch.full((1, 1, 4, 4), nan), options=["--freeze"])
    case("numbers-hardtanh-of-linear", layer(lambda: nn.Sequential(nn.Linear(8, 3), nn.Hardtanh())), special[None], options=["--freeze"])
    case("numbers-xlogy", lambda a: torch.xlogy(a, -a) + torch.special.xlog1py(a, a), special)
    case("numbers-fmod", lambda a: torch.stack([torch.fmod(a, 2.0), torch.remainder(a, -2.0), torch.fmax(a, i(1.0)), torch.fmin(a, i(nan))]), special[:6])
    case("numbers-sign", lambda a: torch.stack([torch.sign(a), torch.sgn(a), torch.copysign(i(2.0).expand(8), a), torch.signbit(a).float(), a.round(), a.trunc()]), special)


def bytes_and_regions():
    image = x(1, 3, 9, 7, dtype=torch.uint8)
    for mode in ("bilinear", "bicubic"):
        case(f"bytes-{mode}-smaller", lambda a, mode=mode: F.interpolate(a, size=(4, 3), mode=mode, antialias=True), image)
        case(f"bytes-{mode}-wider", lambda a, mode=mode: F.interpolate(a, size=(9, 20), mode=mode, antialias=True), image)
        case(f"bytes-{mode}-channels-last", lambda a, mode=mode: F.interpolate(a, scale_factor=0.5, mode=mode, antialias=True), image.to(memory_format=torch.channels_last))
        case(f"bytes-{mode}-batch", lambda a, mode=mode: F.interpolate(a, size=(3, 5), mode=mode, antialias=True), x(3, 4, 8, 8, dtype=torch.uint8))
    case("bytes-mean", lambda a: a.float().mean((2, 3)).to(torch.uint8), image)
    case("bytes-wrap", lambda a: a * 40 - 7, image)
    case("bytes-shift", lambda a: (a << 3) ^ (a >> 1), image)


def sparse():
    where, values = torch.tensor([[0, 1, 3, 1], [4, 2, 0, 2]]), t(1.0, 2.0, 3.0, 4.0)
    case("sparse-to-dense", lambda p, v: torch.sparse_coo_tensor(p, v, (4, 5)).to_dense(), where, values, train=True)
    case("sparse-add", lambda p, v, a: torch.sparse_coo_tensor(p, v, (4, 5)).to_dense() + a, where, values, x(4, 5))
    case("sparse-mm", lambda p, v, a: torch.sparse.mm(torch.sparse_coo_tensor(p, v, (4, 5)), a), where, values, x(5, 2))
    case("sparse-adjacency", lambda p, v, a: torch.sparse_coo_tensor(p, v, (4, 5)).coalesce() @ torch.relu(a), where, values, x(5, 3))


def collected():
    """Writes, views, indices of data, higher-order calls."""
    a = x(4, 6)
    case("kinds-index-unbacked-slice", lambda a, n: a[:, : n.item()].sum(1) if torch._check(n.item() <= 6) is None else a, a, i(3), runs=[(a, i(5))])
    case("kinds-select-negative-item", lambda a, n: a[-n.item()], a, i(2), runs=[(a, i(1))])
    case("kinds-mask-write", lambda a: a.clone().masked_fill_(a > 0, -1.0).add_(a[0]), a, train=True)
    case("kinds-diagonal-write", lambda a: _into(a.clone(), lambda b: b.diagonal().mul_(3.0)), a)
    case("kinds-real-write", lambda a: _into(torch.complex(a, -a), lambda b: b.real.zero_()).abs(), a)
    case("kinds-as-strided-write", lambda a: _into(a.clone(), lambda b: b.as_strided((2, 2), (6, 1)).fill_(5.0)), a)
    case("kinds-vmap", lambda a: torch.vmap(lambda r: r.cumsum(0).flip(0) @ r)(a), a, train=True)
    case("kinds-vmap-two", lambda a: torch.vmap(torch.vmap(lambda v, w: v * w.sin(), (0, None)), (0, 0))(a, a[:, 0]), a)
    case("kinds-vmap-index", lambda a: torch.vmap(lambda r: r[r.argmax()])(a), a)
    case("kinds-grad-in-graph", lambda a: torch.func.grad(lambda v: (v ** 3).sum())(a), a)
    case("kinds-jvp", lambda a: torch.func.jvp(lambda v: v.sin().sum(1), (a,), (a,))[1], a)
    case("kinds-topk-gather", lambda a: a.gather(1, a.topk(3, 1)[1].flip(1)), a, train=True)
    case("kinds-scatter-reduce", lambda a: torch.zeros(5).scatter_reduce(0, torch.tensor([0, 1, 1, 4]), a[:, 0], "amax", include_self=False), a)
    case("kinds-unique", lambda a: torch.unique((a * 2).round().long(), return_counts=True), a)
    case("kinds-nonzero", lambda a: a[(a > 0).nonzero(as_tuple=True)].sum(), a)
    case("kinds-bincount", lambda a: torch.bincount((a.abs() * 2).long().flatten(), minlength=12), a)
    case("kinds-searchsorted", lambda a: torch.searchsorted(a.sort(1)[0], a, right=True), a)
    case("kinds-weight-norm", layer(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))), a, train=True)
    case("kinds-lstm", layer(lambda: nn.LSTM(6, 5, batch_first=True, bidirectional=True)), x(2, 4, 6), train=True)
    case("kinds-gru-dynamic", layer(lambda: nn.GRU(6, 5, batch_first=True)), x(2, 4, 6), dynamic={1: AUTO}, runs=[(x(2, 7, 6),)])
    case("kinds-transformer", layer(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), x(2, 5, 8), train=True)
    case("kinds-multihead-mask", layer(lambda: _Attention()), x(2, 5, 8), torch.tensor([[False] * 5, [False, False, True, True, True]]))
    case("kinds-embedding-bag", layer(lambda: nn.EmbeddingBag(10, 4, mode="max")), torch.tensor([[1, 2, 3], [4, 5, 9]]))
    case("kinds-ctc", lambda a: F.ctc_loss(a.log_softmax(2), torch.tensor([[1, 2], [2, 1]]), torch.tensor([5, 4]), torch.tensor([2, 1])), x(5, 2, 4), train=True)
    case("kinds-stft", lambda a: torch.stft(a, 8, 4, window=torch.hann_window(8), return_complex=True).abs(), x(2, 32))
    case("kinds-istft", lambda a: torch.istft(torch.stft(a, 8, 4, window=torch.hann_window(8), return_complex=True), 8, 4, window=torch.hann_window(8)), x(2, 32))
    case("kinds-pdist", lambda a: F.pdist(a), a, train=True)
    case("kinds-pdist-decomposed", lambda a: F.pdist(a, p=3.0), a, decompose=True)
    case("kinds-cdist-decomposed", lambda a: torch.cdist(a, a * 2), a, decompose=True)
    case("kinds-equal", lambda a: torch.where(torch.all(a == a), a, -a) + torch.allclose(a, a), a)
    case("kinds-quantile", lambda a: torch.quantile(a, t(0.1, 0.5), dim=1), a, train=True)
    case("kinds-histc", lambda a: torch.histc(a, 5, -2, 2), a)
    case("kinds-mode-median", lambda a: torch.stack([a.median(1)[0], a.nanmedian(1)[0], (a * 2).round().mode(1)[0]]), a)
    case("kinds-tensordot", lambda a: torch.tensordot(a.view(4, 2, 3), a.view(4, 3, 2), dims=([0, 2], [0, 1])), a, train=True)
    case("kinds-lu-solve", lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a[:, :4] + 4 * torch.eye(4)), a), a)
    case("kinds-matrix-power", lambda a: torch.linalg.matrix_power(a[:, :4], 3) + torch.linalg.matrix_exp(a[:, :4]), a)
    case("kinds-eigh", lambda a: torch.linalg.eigh(a @ a.T)[0], a, train=True)
    case("kinds-gumbel-like", lambda a: torch.special.erfcx(a) + torch.special.i0e(a) + torch.special.ndtri(torch.sigmoid(a)), a)
    case("kinds-polygamma", lambda a: torch.polygamma(1, a.abs() + 1) + torch.digamma(a.abs() + 0.5) + torch.lgamma(a), a, train=True)


def _into(value, write):
    write(value)
    return value


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, a, mask):
        return self.attention(a, a, a, key_padding_mask=mask, need_weights=True)


sizes()
numbers()
bytes_and_regions()
sparse()
collected()
