"""More cases of try_exports.py: layers, losses and resampling with the arguments that people set less often."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from export_cases import case, i, layer, t, x

image, signal, volume = x(2, 4, 9, 8), x(2, 4, 13), x(1, 2, 5, 6, 7)


def convolutions():
    for mode in ("zeros", "reflect", "replicate", "circular"):
        case(f"arguments-conv1d-{mode}", layer(lambda mode=mode: nn.Conv1d(4, 6, 5, stride=2, padding=2, padding_mode=mode)), signal, train=True)
        case(f"arguments-conv3d-{mode}", layer(lambda mode=mode: nn.Conv3d(2, 2, 3, padding=(0, 1, 2), groups=2, padding_mode=mode)), volume, train=True)
    case("arguments-conv2d-same-even", layer(lambda: nn.Conv2d(4, 3, (2, 4), padding="same", dilation=(3, 1))), image, train=True)
    case("arguments-transposed-groups", layer(lambda: nn.ConvTranspose1d(4, 6, 4, stride=3, padding=1, output_padding=2, groups=2, dilation=2)), signal, train=True)
    case("arguments-transposed-3d", layer(lambda: nn.ConvTranspose3d(2, 3, 2, stride=(1, 2, 1), dilation=(1, 1, 2))), volume, train=True)


def pools():
    for ceil in (False, True):
        for padded in (False, True):
            case(f"arguments-avg-pool-{ceil}-{padded}", lambda a, c=ceil, p=padded: F.avg_pool2d(a, (3, 2), (2, 3), (1, 1), c, p), image, train=True)
    case("arguments-max-pool-dilated", lambda a: F.max_pool2d(a, (3, 2), (2, 3), (1, 1), (2, 1), True), image, train=True)
    case("arguments-max-unpool", lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2, output_size=[9, 8]), image, train=True)
    case("arguments-fractional-pool", lambda a, s: F.fractional_max_pool2d(a, 2, output_size=(4, 5), _random_samples=s), image, x(2, 4, 2).sigmoid(), train=True)
    case("arguments-lp-pool", lambda a: F.lp_pool2d(a.abs(), 1.5, (2, 3), (1, 2)), image, train=True)


def recurrent():
    for both in (False, True):
        for projected in (0, 3):
            case(f"arguments-lstm-{both}-{projected}",
                 layer(lambda b=both, p=projected: nn.LSTM(8, 5, 2, batch_first=b, bidirectional=b, proj_size=p, bias=not b)), x(4, 3, 8), train=True)
    case("arguments-rnn-relu", layer(lambda: nn.RNN(8, 5, 2, nonlinearity="relu", bidirectional=True)), x(4, 3, 8), train=True)


def resampling():
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                case(f"arguments-grid-{mode}-{padding}-{corners}",
                     lambda a, g, m=mode, p=padding, c=corners: F.grid_sample(a, g, m, p, c), image, x(2, 4, 5, 2) * 1.3, train=True)
    for mode, given in (("linear", signal), ("nearest-exact", image), ("trilinear", volume), ("area", volume)):
        for scale in (0.6, 1.7):
            case(f"arguments-resize-{mode}-{scale}", lambda a, m=mode, s=scale: F.interpolate(a, scale_factor=s, mode=m), given, train=True)


def losses():
    scores, classes = x(5, 4), t([1, 0, -100, 3, 2])
    for how in ("none", "mean", "sum"):
        case(f"arguments-cross-entropy-{how}", lambda a, y, w, r=how: F.cross_entropy(a, y, w, reduction=r, label_smoothing=.2), scores, classes, x(4).abs(), train=True)
        case(f"arguments-triplet-{how}", lambda a, b, c, r=how: F.triplet_margin_loss(a, b, c, p=3, swap=True, reduction=r),
             scores, x(5, 4, seed=2), x(5, 4, seed=4), train=True)
    words, starts = t([1, 2, 4, 5, 4, 3, 2, 9]), t([0, 2, 2, 5])
    for mode in ("sum", "mean", "max"):
        case(f"arguments-bag-empty-{mode}", lambda w, a, o, m=mode: F.embedding_bag(a, w, o, mode=m), x(10, 4), words, starts, train=True)
    case("arguments-attention-empty-row", lambda q, m: F.scaled_dot_product_attention(q, q, q, m), x(2, 2, 5, 8), torch.ones(5, 5).tril(-1).bool(), train=True)
    case("arguments-logcumsumexp", lambda a: (a.logcumsumexp(0), a.flip(0).logcumsumexp(0)), t(-math.inf, -math.inf, 1., 2.))
    case("arguments-index-put-value", lambda a: a.index_put((a > 0,), i(2.5)), scores)


for family in (convolutions, pools, recurrent, resampling, losses):
    family()
